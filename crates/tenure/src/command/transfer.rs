//! `tenure transfer`.

use std::path::PathBuf;

use clap::Args;

use super::lease_token::{self, LeaseToken};
use super::lease_view;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Hands a lease on to another holder, without a moment in which it is free.
///
/// The old id, fence and token are worth nothing from then on; the new ones are printed. Both holders belong to
/// the caller.
///
/// Example: tenure transfer 4f1d09aa-17 --to ci-43 --token-file lease.token
#[derive(Debug, Args)]
pub struct Transfer {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    id: String,
    /// Who holds it from then on
    #[arg(long, value_name = "HOLDER")]
    to: String,
    #[command(flatten)]
    token: LeaseToken,
    /// Write the new token to this file, which only its owner can read, and not to standard output
    #[arg(long, value_name = "FILE")]
    new_token_file: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Transfer {
    /// Hands it on.
    pub fn run(self) -> Result<(), Failure> {
        let token = self.token.read()?;
        let request = tenure_api::Transfer { token: token.expose().to_owned(), to: self.to };
        let mut granted = ask(async |client| Ok(client.transfer(&self.id, &request).await?))?;
        if let Some(path) = &self.new_token_file {
            lease_token::write(path, &granted.token)?;
            granted.token.clear();
        }
        self.format.print(&granted, |granted| lease_view::granted(granted, self.new_token_file.is_none()))
    }
}
