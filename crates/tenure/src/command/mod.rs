//! What can be asked of the command line.

mod serve;

use std::process::ExitCode;

use clap::Subcommand;

/// A command, with its own help text.
#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(serve::Serve),
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> ExitCode {
        match self {
            Command::Serve(serve) => serve.run(),
        }
    }
}
