//! Commands on one lease: show, renew, release, transfer and revoke.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tenure_api::LeaseResponse;

use super::lease_token::LeaseTokenArguments;
use super::{lease_token, lease_view};
use crate::client::with_client;
use crate::duration::{format_short, parse_milliseconds};
use crate::failure::Failure;
use crate::output::Format;

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
        let lease = with_client(async |client| Ok(client.show(&self.id).await?))?;
        self.format.print(&LeaseResponse { lease }, |one| lease_view::fields(&one.lease))
    }
}

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
    token: LeaseTokenArguments,
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
        let request = tenure_api::RenewalRequest { token: token.expose().to_owned(), ttl_ms: self.ttl };
        let renewed = with_client(async |client| Ok(client.renew(&self.id, &request).await?))?;
        self.format.print(&renewed, |renewed| {
            let lease = &renewed.lease;
            let mut text = format!(
                "{} lives until {}, for {}\n",
                lease.id,
                lease.expires_at,
                format_short(lease.remaining_ms)
            );
            if let Some(waiters) = &lease.recall {
                text.push_str(&format!("{} waits for it\n", waiters.by));
            }
            text
        })
    }
}

/// Gives a lease back, so that the next one can have it. What is over already is no error.
///
/// Example: tenure release 4f1d09aa-17 --token-file lease.token
#[derive(Debug, Args)]
pub struct Release {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    id: String,
    #[command(flatten)]
    token: LeaseTokenArguments,
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
            tenure_api::ReleaseRequest { token: token.expose().to_owned(), reason: Some(reason.to_owned()) };
        let lease = with_client(async |client| Ok(client.release(&self.id, &request).await?))?;
        self.format.print(&LeaseResponse { lease }, |LeaseResponse { lease }| {
            let end = lease.end.as_deref().unwrap_or("RELEASED");
            format!("{} on {} is over: {end}\n", lease.id, lease.resource)
        })
    }
}

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
    token: LeaseTokenArguments,
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
        let request = tenure_api::TransferRequest { token: token.expose().to_owned(), to: self.to };
        let mut granted = with_client(async |client| Ok(client.transfer(&self.id, &request).await?))?;
        if let Some(path) = &self.new_token_file {
            lease_token::write(path, &granted.token)?;
            granted.token.clear();
        }
        self.format.print(&granted, |granted| {
            lease_view::granted_lease_table(granted, self.new_token_file.is_none())
        })
    }
}

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
        let request = tenure_api::RevocationRequest { reason: self.reason };
        let lease = with_client(async |client| Ok(client.revoke(&self.id, &request).await?))?;
        self.format.print(&LeaseResponse { lease }, |LeaseResponse { lease }| {
            format!("{} on {} was taken from {}\n", lease.id, lease.resource, lease.holder)
        })
    }
}
