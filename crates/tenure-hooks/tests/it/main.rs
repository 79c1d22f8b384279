//! What agents say and are told, and installed hooks, with real files and git.

#[expect(dead_code, reason = "the tests of tenure-host use the rest")]
#[path = "../../../tenure-host/tests/it/git/support.rs"]
mod git_support;
mod hooks;
mod interception_coverage;
mod install {
    pub mod basics;
    mod git_hooks;
    mod plugin;
    mod property;
    mod shell;
    mod status;
    pub mod support;
}
