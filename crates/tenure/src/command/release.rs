//! `tenure release`.

use clap::{Args, ValueEnum};
use tenure_api::OneLease;

use super::lease_token::LeaseToken;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Gives a lease back, so that the next one can have it. What is over already is no error.
///
/// Example: tenure release 4f1d09aa-17 --token-file lease.token
#[derive(Debug, Args)]
pub struct Release {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    id: String,
    #[command(flatten)]
    token: LeaseToken,
    /// How the work ended
    #[arg(long, value_enum, default_value_t = Reason::Completed)]
    reason: Reason,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Reason {
    /// It is done
    Completed,
    /// It failed or was given up
    Aborted,
    /// The holder lets others go first
    Voluntary,
}

impl Release {
    /// Releases it.
    pub fn run(self) -> Result<(), Failure> {
        let token = self.token.read()?;
        let reason = match self.reason {
            Reason::Completed => "COMPLETED",
            Reason::Aborted => "ABORTED",
            Reason::Voluntary => "VOLUNTARY",
        };
        let request =
            tenure_api::Release { token: token.expose().to_owned(), reason: Some(reason.to_owned()) };
        let lease = ask(async |client| Ok(client.release(&self.id, &request).await?))?;
        self.format.print(&OneLease { lease }, |OneLease { lease }| {
            let end = lease.end.as_deref().unwrap_or("RELEASED");
            format!("{} on {} is over: {end}\n", lease.id, lease.resource)
        })
    }
}
