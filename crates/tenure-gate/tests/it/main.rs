//! One integration binary: what the gate sees and does on a real machine, with real git, files and processes.

mod blame;
mod git;
mod git_hooks_folder;
mod git_support;
mod install;
mod install_git;
mod install_plugin;
mod install_property;
mod install_support;
