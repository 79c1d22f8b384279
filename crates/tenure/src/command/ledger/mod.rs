//! `tenure ledger`.

mod copy;
mod moved;
mod restored;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Copies a ledger, moves it to another machine, and puts a copy in the place of a lost original.
#[derive(Debug, Args)]
pub struct Ledger {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    Copy(copy::CopyTo),
    Moved(moved::Moved),
    Restored(restored::RestoredHere),
}

impl Ledger {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            LedgerCommand::Copy(copy) => copy.run(),
            LedgerCommand::Moved(moved) => moved.run(),
            LedgerCommand::Restored(restored) => restored.run(),
        }
    }
}
