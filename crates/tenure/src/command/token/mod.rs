//! `tenure token`.

mod create;
mod list;
mod revoke;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Makes, lists and revokes the tokens with which requests are made.
///
/// A token says who speaks, and what it may do on which resources. All of this needs the scope `admin`.
#[derive(Debug, Args)]
pub struct Token {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    Create(create::Create),
    List(list::List),
    Revoke(revoke::Revoke),
}

impl Token {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            TokenCommand::Create(create) => create.run(),
            TokenCommand::List(list) => list.run(),
            TokenCommand::Revoke(revoke) => revoke.run(),
        }
    }
}
