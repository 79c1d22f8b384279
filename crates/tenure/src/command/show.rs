//! `tenure show`.

use clap::Args;
use tenure_api::OneLease;

use super::lease_view;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Shows everything about one lease, also if it ended not long ago.
///
/// Example: tenure show 4f1d09aa-17
#[derive(Debug, Args)]
pub struct Show {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    id: String,
    #[command(flatten)]
    format: Format,
}

impl Show {
    /// Asks for it and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let lease = ask(async |client| Ok(client.show(&self.id).await?))?;
        self.format.print(&OneLease { lease }, |one| lease_view::fields(&one.lease))
    }
}
