//! `tenure session`.

mod commands;
mod view;
mod wait;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Starts, stops and shows sessions: what somebody wants to be shown, and what became of it.
///
/// Whoever wants a channel or a recording says so, and is told a session at once. The one worker takes it, with its leases,
/// and runs its pipeline; docs/guides/intents.md shows how. All of this needs the scope `v3:write`.
#[derive(Debug, Args)]
pub struct SessionArguments {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    Start(commands::Start),
    Stop(commands::Stop),
    Show(commands::Show),
    List(commands::List),
}

impl SessionArguments {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            SessionCommand::Start(start) => start.run(),
            SessionCommand::Stop(stop) => stop.run(),
            SessionCommand::Show(show) => show.run(),
            SessionCommand::List(list) => list.run(),
        }
    }
}
