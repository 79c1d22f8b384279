//! `tenure stop`.

use clap::Args;

use crate::client::with_local_client;
use crate::failure::Failure;
use crate::output::write_text;

/// Stops the server of this machine in good order, as SIGTERM does.
///
/// Leases stay in the ledger, and the next hook of an agent starts the server again; until then no agent can change a file.
/// Only for people: it is refused to whatever an agent started.
///
/// Example: tenure stop
#[derive(Debug, Args)]
pub struct Stop {}

impl Stop {
    /// Tells it.
    pub fn run(self) -> Result<(), Failure> {
        with_local_client(async |client| client.stop_server().await)?;
        write_text("The server stops.\n")?;
        Ok(())
    }
}
