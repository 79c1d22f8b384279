//! `tenure revoke`.

use clap::Args;
use tenure_api::OneLease;

use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Takes a lease away from its holder. Needs a token with the scope `admin`.
///
/// The holder finds out when it renews. Until then it may still act: only a resource that compares fences keeps it out.
///
/// Example: tenure revoke 4f1d09aa-17 --reason "the machine burnt down"
#[derive(Debug, Args)]
pub struct Revoke {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    id: String,
    /// Why, for people; it stands in the ledger
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    format: Format,
}

impl Revoke {
    /// Takes it away.
    pub fn run(self) -> Result<(), Failure> {
        let request = tenure_api::Revoke { reason: self.reason };
        let lease = ask(async |client| Ok(client.revoke(&self.id, &request).await?))?;
        self.format.print(&OneLease { lease }, |OneLease { lease }| {
            format!("{} on {} was taken from {}\n", lease.id, lease.resource, lease.holder)
        })
    }
}
