//! What is on this machine, with real files, processes and git.

mod blame;
mod reexec;
mod watch;
mod watch_limits;
mod git {
    mod changed_paths;
    mod hooks_folder;
    mod ignored;
    mod impact;
    mod impact_dirty_files;
    mod impact_env;
    mod impact_nested;
    mod impact_patches;
    mod impact_random;
    pub mod impact_support;
    pub mod support;
}
mod paths {
    mod errors;
    mod mounts;
    mod random;
    pub mod random_tree;
    mod worktrees;
}
mod process {
    mod agents;
    mod liveness;
    mod open_files;
    mod writers;
}
