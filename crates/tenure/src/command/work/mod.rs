//! `tenure work`.

mod arguments;
mod commands;
mod view;

use clap::{Args, Subcommand};

pub use self::view::format_amounts;
use crate::failure::Failure;

/// Leases on work that say what their holder may do, and how much of it.
#[derive(Debug, Args)]
pub struct Work {
    #[command(subcommand)]
    command: WorkCommand,
}

#[derive(Debug, Subcommand)]
enum WorkCommand {
    Claim(commands::Claim),
    Derive(commands::Derive),
    Spend(commands::Spend),
    Show(commands::Show),
    Release(commands::Release),
}

impl Work {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            WorkCommand::Claim(claim) => claim.run(),
            WorkCommand::Derive(derive) => derive.run(),
            WorkCommand::Spend(spend) => spend.run(),
            WorkCommand::Show(show) => show.run(),
            WorkCommand::Release(release) => release.run(),
        }
    }
}
