//! `tenure renew`.

use clap::Args;

use super::lease_token::LeaseToken;
use crate::duration::{parse_milliseconds, short};
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Keeps a lease alive for as long again as it was granted.
///
/// Exit code 76: the lease is over, and what it protected may belong to somebody else already.
///
/// Example: tenure renew 4f1d09aa-17 --token-file lease.token
#[derive(Debug, Args)]
pub struct Renew {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    id: String,
    #[command(flatten)]
    token: LeaseToken,
    /// Another length from now on: 1s to 24h
    #[arg(long, value_name = "DURATION", value_parser = parse_milliseconds)]
    ttl: Option<u64>,
    #[command(flatten)]
    format: Format,
}

impl Renew {
    /// Renews it.
    pub fn run(self) -> Result<(), Failure> {
        let token = self.token.read()?;
        let request = tenure_api::Renew { token: token.expose().to_owned(), ttl_ms: self.ttl };
        let renewed = ask(async |client| Ok(client.renew(&self.id, &request).await?))?;
        self.format.print(&renewed, |renewed| {
            let lease = &renewed.lease;
            let mut text =
                format!("{} lives until {}, for {}\n", lease.id, lease.expires_at, short(lease.remaining_ms));
            if let Some(recall) = &lease.recall {
                text.push_str(&format!("{} waits for it\n", recall.by));
            }
            text
        })
    }
}
