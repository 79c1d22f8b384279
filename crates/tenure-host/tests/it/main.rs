//! What is on this machine, with real files, processes and git.

mod blame;
mod git_changed_paths;
mod git_hooks_folder;
mod git_ignored;
mod git_impact;
mod git_impact_dirty_files;
mod git_impact_env;
mod git_impact_nested;
mod git_impact_patches;
mod git_impact_random;
mod git_impact_support;
mod git_support;
mod paths_errors;
mod paths_mounts;
mod paths_random;
mod paths_random_tree;
mod paths_worktrees;
mod process_agents;
mod process_liveness;
mod process_open_files;
mod process_writers;
mod reexec;
mod watch;
mod watch_limits;
