//! `tenure work show`.

use clap::Args;

use super::view;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Shows a lease on work: what it allows, what was used up, and what is left.
///
/// Example: tenure work show 4f1d09aa-17
#[derive(Debug, Args)]
pub struct Show {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    lease_id: String,
    #[command(flatten)]
    format: Format,
}

impl Show {
    /// Asks for it and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let shown = ask(async |client| Ok(client.work(&self.lease_id).await?))?;
        self.format.print(&shown, view::fields)
    }
}
