//! What can be asked of the command line.

mod ledger;
mod log;
mod passport;
mod replay;
mod serve;
mod verify;

use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Failure;

/// A command, with its own help text.
#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(serve::Serve),
    Verify(verify::Verify),
    Replay(replay::ReplayAt),
    Log(log::Log),
    Passport(passport::Passport),
    Ledger(ledger::Ledger),
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> ExitCode {
        let done = match self {
            Command::Serve(serve) => return serve.run(),
            Command::Verify(verify) => verify.run(),
            Command::Replay(replay) => replay.run(),
            Command::Log(log) => log.run(),
            Command::Passport(passport) => passport.run(),
            Command::Ledger(ledger) => ledger.run(),
        };
        done.map_or_else(Failure::report, |()| ExitCode::SUCCESS)
    }
}
