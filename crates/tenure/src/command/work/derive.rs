//! `tenure work derive`.

use std::path::PathBuf;

use clap::Args;
use tenure_api::DeriveWork;

use super::amounts::{Allowed, Amounts, Key};
use super::view;
use crate::command::lease_token::LeaseToken;
use crate::duration::parse_milliseconds;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Gives a part of a lease to somebody else.
///
/// The new lease allows no more, ends no later, and has its budget from this one's, for good: what it does not use up does
/// not come back. It ends when this one ends.
///
/// Example: tenure work derive 4f1d09aa-17 T-17/tests --as tester --ttl 1m --tokens 5000 --token-file planner.token
#[derive(Debug, Args)]
pub struct Derive {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    lease_id: String,
    /// The work
    #[arg(value_name = "WORK")]
    work_id: String,
    /// Who will hold it
    #[arg(long = "as", value_name = "ACTOR")]
    actor_id: String,
    /// For how long: no longer than the lease lives
    #[arg(long, value_name = "DURATION", value_parser = parse_milliseconds)]
    ttl: u64,
    #[command(flatten)]
    allowed: Allowed,
    #[command(flatten)]
    amounts: Amounts,
    #[command(flatten)]
    key: Key,
    #[command(flatten)]
    token: LeaseToken,
    /// Write the new lease's token to this file, which only its owner can read, and not to standard output
    #[arg(long, value_name = "FILE")]
    new_token_file: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Derive {
    /// Asks for it.
    pub fn run(self) -> Result<(), Failure> {
        let key = self.key.read()?;
        let request = DeriveWork {
            lease_id: self.lease_id,
            token: self.token.read()?.expose().to_owned(),
            work_id: self.work_id,
            actor_id: self.actor_id,
            ttl_ms: self.ttl,
            scope: self.allowed.scope(),
            budget: self.amounts.budget(),
        };
        let granted = ask(async |client| Ok(client.derive_work(&request, key.as_ref()).await?))?;
        view::hand_out(granted, self.new_token_file.as_deref(), self.format)
    }
}
