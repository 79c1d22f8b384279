//! `tenure hook`.

mod agent;
mod agent_shell;
mod git;
mod permission;
mod requests;
mod retry_wait;
mod send_event;
pub mod verdict;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::Args;
use tenure_gate::coding_agent::CodingAgent;

use crate::terminal_message::print_stderr;

/// With this code and something on standard error, every agent keeps an edit from happening.
const BLOCKED_EXIT_CODE: u8 = 2;

/// What agents and git call by themselves, once `tenure install` has put it in place. Nobody types it.
///
/// An agent (claude, codex, gemini, cursor, opencode) says on standard input what it is about to do, and is answered in the
/// form that it obeys. A file that somebody else is editing is waited for inside the hook: one retry after three minutes,
/// then a stop, and a report for the person (`tenure report list`). Where nobody serves, the server is started. Whatever
/// goes wrong is a denial.
///
/// For git (`tenure hook git NAME`) it says what is committed: leases end with it. It never adds, commits or stops
/// anything: its exit code is 0.
///
/// Example: tenure hook claude < payload.json
#[derive(Debug, Args)]
pub struct Hook {
    /// Which agent, or `git`
    #[arg(value_name = "AGENT|git")]
    caller: OsString,
    /// For git: which hook (pre-commit, post-commit, reference-transaction), and what git says to it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Hook {
    /// Answers.
    pub fn run(self) -> ExitCode {
        answer(&self.caller, &self.arguments)
    }
}

/// Runs a hook without looking at the rest of the command line: quick, and no mistake in it lets an edit through. Nothing,
/// if this is no hook, or somebody wants help.
pub fn run_hook_command(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.nth(1)? != "hook" {
        return None;
    }
    let Some(caller) = arguments.next() else {
        return Some(deny_misconfigured("it is not said for which agent"));
    };
    if matches!(caller.to_str(), Some("--help" | "-h" | "help")) {
        return None;
    }
    Some(answer(&caller, &arguments.collect::<Vec<_>>()))
}

fn answer(caller: &OsStr, arguments: &[OsString]) -> ExitCode {
    if caller == "git" {
        return git::run(arguments);
    }
    match caller.to_string_lossy().parse::<CodingAgent>() {
        Ok(agent) if arguments.is_empty() => agent::run(agent),
        Ok(_) => deny_misconfigured("there is more on its command line than the agent"),
        Err(error) => deny_misconfigured(&error),
    }
}

/// Nobody knows whom to answer. This stops the edit whoever it is.
fn deny_misconfigured(what: &str) -> ExitCode {
    print_stderr(&format!(
        "Nothing was changed: this hook of Tenure is not set up as it should be ({what}). Ask the person to run `tenure \
         install` again.\n"
    ));
    BLOCKED_EXIT_CODE.into()
}
