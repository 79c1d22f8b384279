//! `tenure show`.

use clap::Args;
use tenure_api::OneLease;

use super::lease_view;
use crate::failure::Failure;
use crate::output::{write_answer, write_text};
use crate::server::ask;

/// Shows everything about one lease, also if it ended not long ago.
///
/// Example: tenure show 4f1d09aa-17
#[derive(Debug, Args)]
pub struct Show {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    id: String,
    /// Print one JSON value instead of text
    #[arg(long)]
    json: bool,
}

impl Show {
    /// Asks for it and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let lease = ask(async |client| Ok(client.show(&self.id).await?))?;
        if self.json {
            write_answer(&OneLease { lease })?;
        } else {
            write_text(&lease_view::fields(&lease).to_string())?;
        }
        Ok(())
    }
}
