//! What is on this machine, with real files, processes and git.

mod again;
mod blame;
mod git;
mod git_hooks_folder;
mod git_support;
mod hooks;
mod install;
mod install_git;
mod install_plugin;
mod install_property;
mod install_support;
mod paths_faults;
mod paths_mounts;
mod paths_random;
mod paths_trees;
mod paths_world;
mod process_agents;
mod process_life;
mod process_open;
