//! `tenure work claim`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use tenure_api::ClaimWork;

use super::amounts::{Allowed, Amounts, Key};
use super::view;
use crate::duration::parse_milliseconds;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask;

/// Claims a piece of work, and says what its holder may do and how much of it.
///
/// What is not bounded has no bound. Exit code 75: somebody else has it.
///
/// Example: tenure work claim T-17 --as planner --ttl 10m --tokens 100000 --token-file planner.token
#[derive(Debug, Args)]
pub struct Claim {
    /// The work
    #[arg(value_name = "WORK")]
    work_id: String,
    /// Who will hold it
    #[arg(long = "as", value_name = "ACTOR")]
    actor_id: String,
    /// For how long, unless it is renewed [default: 1m]
    #[arg(long, value_name = "DURATION", value_parser = parse_milliseconds)]
    ttl: Option<u64>,
    #[command(flatten)]
    allowed: Allowed,
    #[command(flatten)]
    amounts: Amounts,
    #[command(flatten)]
    key: Key,
    /// Write the token to this file, which only its owner can read, and not to standard output
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Claim {
    /// Asks for it.
    pub fn run(self) -> Result<(), Failure> {
        let key = self.key.read()?;
        let request = ClaimWork {
            work_id: self.work_id,
            actor_id: self.actor_id,
            ttl_ms: self.ttl,
            scope: self.allowed.scope(),
            budget: Some(self.amounts.bounds()),
            labels: BTreeMap::new(),
        };
        let granted = ask(async |client| Ok(client.claim_work(&request, key.as_ref()).await?))?;
        view::hand_out(granted, self.token_file.as_deref(), self.format)
    }
}
