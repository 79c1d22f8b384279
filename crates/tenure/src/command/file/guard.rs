//! `tenure guard`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use tenure_guard::{GuardError, SessionSelector, run};

use crate::command::lease::run::exec_failure;
use crate::exit;
use crate::failure::Failure;

/// Runs a command so that nothing it starts can change a file that somebody else is editing.
///
/// Whatever the command does, and whatever is started by what it starts: before a file of a git working tree is written,
/// created, renamed, removed, linked or its mode changed, its lease is taken, as it is for the edits of an agent. Where another
/// one has the file, the change fails at once with "Device or resource busy", and standard error says who has it and what to do.
/// Git commands that would change many files at once (`stash`, `reset --hard`, `checkout`, `clean`, …) are not run at all
/// then. Reading costs nothing. Files that git ignores, `.git` and whatever is outside of a working tree are not asked for.
///
/// For an agent, run the agent itself: `tenure guard -- aider`. Below an agent that has Tenure's hooks, the guard speaks for the
/// session that was heard of last, or for the one that is named. Inside a guard, a guard just runs the command. What was taken
/// is given back by a commit, or when the command and all that it started are gone.
///
/// No root is needed. Programs that gain rights (`sudo`) do not work inside; whoever writes without being started by the
/// command (a container, a build server that runs already) is not seen.
///
/// Exit codes: the command's own; 69 if it cannot be guarded, and so was not run.
///
/// Example: tenure guard -- aider src/main.rs
/// Example: tenure guard -- sh -c 'sed -i s/old/new/ src/*.rs'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Guard {
    /// For which session of the agent that is above; TENURE_SESSION says the same
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// For which subagent of that session; TENURE_SUBAGENT says the same
    #[arg(long, value_name = "NAME", requires = "session")]
    subagent: Option<String>,
    /// The command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Guard {
    /// Runs it.
    pub fn run(self) -> ExitCode {
        exit_code(run(&self.command, &SessionSelector::new(self.session, self.subagent)))
    }
}

/// The exit code of a guard, and of each process that only a guard starts. What went wrong is said.
pub fn exit_code(result: Result<ExitCode, GuardError>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(GuardError::NoCommand) => exit::USAGE.into(),
        Err(GuardError::NotExecuted { program, error }) => exec_failure(&program, &error).report(),
        Err(GuardError::Reported) => exit::UNAVAILABLE.into(),
        Err(error) => Failure::from_message(exit::UNAVAILABLE, &error.to_string()).report(),
    }
}
