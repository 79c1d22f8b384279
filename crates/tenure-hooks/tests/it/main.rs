//! What agents say and are told, and installed hooks, with real files and git.

#[expect(dead_code, reason = "the tests of tenure-host use the rest")]
#[path = "../../../tenure-host/tests/it/git_support.rs"]
mod git_support;
mod hooks;
mod install;
mod install_git_hooks;
mod install_plugin;
mod install_property;
mod install_shell;
mod install_status;
mod install_support;
mod interception_coverage;
