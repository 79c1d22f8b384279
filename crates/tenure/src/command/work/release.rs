//! `tenure work release`.

use clap::Args;
use tenure_api::{OneLease, ReleaseWork};

use crate::command::lease_token::LeaseToken;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Gives a lease on work back, and with it whatever was derived from it.
///
/// Example: tenure work release 4f1d09aa-17 --token-file planner.token
#[derive(Debug, Args)]
pub struct Release {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    lease_id: String,
    #[command(flatten)]
    token: LeaseToken,
    #[command(flatten)]
    format: Format,
}

impl Release {
    /// Releases it.
    pub fn run(self) -> Result<(), Failure> {
        let token = self.token.read()?.expose().to_owned();
        let request = ReleaseWork { lease_id: self.lease_id, token, reason: None };
        let lease = ask(async |client| Ok(client.release_work(&request).await?))?;
        self.format.print(&OneLease { lease }, |OneLease { lease }| {
            let end = lease.end.as_deref().unwrap_or("RELEASED");
            format!("{} on {} is over: {end}\n", lease.id, lease.resource)
        })
    }
}
