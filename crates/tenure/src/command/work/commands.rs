//! Claims, derives, spends, renews and releases work leases.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use tenure_api::{
    Budget, LeaseResponse, SpendPurpose, WorkClaimRequest, WorkDerivationRequest, WorkReleaseRequest,
    WorkSpendRequest,
};

use super::arguments::{BudgetArguments, IdempotencyKeyArguments, ScopeArguments};
use super::view;
use crate::client::with_client;
use crate::command::lease_token::LeaseTokenArguments;
use crate::duration::parse_milliseconds;
use crate::failure::Failure;
use crate::output::Format;

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
    scope: ScopeArguments,
    #[command(flatten)]
    amounts: BudgetArguments,
    #[command(flatten)]
    key: IdempotencyKeyArguments,
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
        let request = WorkClaimRequest {
            work_id: self.work_id,
            actor_id: self.actor_id,
            ttl_ms: self.ttl,
            scope: self.scope.scope(),
            budget: Some(self.amounts.bounds()),
            labels: BTreeMap::new(),
        };
        let granted = with_client(async |client| Ok(client.claim_work(&request, key.as_ref()).await?))?;
        view::print_granted(granted, self.token_file.as_deref(), self.format)
    }
}

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
    scope: ScopeArguments,
    #[command(flatten)]
    amounts: BudgetArguments,
    #[command(flatten)]
    key: IdempotencyKeyArguments,
    #[command(flatten)]
    token: LeaseTokenArguments,
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
        let request = WorkDerivationRequest {
            lease_id: self.lease_id,
            token: self.token.read()?.expose().to_owned(),
            work_id: self.work_id,
            actor_id: self.actor_id,
            ttl_ms: self.ttl,
            scope: self.scope.scope(),
            budget: self.amounts.budget(),
        };
        let granted = with_client(async |client| Ok(client.derive_work(&request, key.as_ref()).await?))?;
        view::print_granted(granted, self.new_token_file.as_deref(), self.format)
    }
}

/// Uses up something of what a lease allows: all of it, or nothing.
///
/// Spending nothing asks whether the lease lives and allows what it is for.
///
/// Example: tenure work spend 4f1d09aa-17 --tokens 1200 --tool-calls 1 --tool search --key call-7
#[derive(Debug, Args)]
pub struct Spend {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    lease_id: String,
    #[command(flatten)]
    amounts: BudgetArguments,
    /// On which work; the lease has to allow it
    #[arg(long = "work", value_name = "WORK")]
    work_id: Option<String>,
    /// With which tool; the lease has to allow it
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// In which namespace; the lease has to allow it
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    key: IdempotencyKeyArguments,
    #[command(flatten)]
    token: LeaseTokenArguments,
    #[command(flatten)]
    format: Format,
}

impl Spend {
    /// Spends it.
    pub fn run(self) -> Result<(), Failure> {
        let key = self.key.read()?;
        let purpose = SpendPurpose { work_id: self.work_id, tool: self.tool, namespace: self.namespace };
        let Budget { episodes, tool_calls, tokens, duration_ms } = self.amounts.budget();
        let request = WorkSpendRequest {
            lease_id: self.lease_id,
            token: self.token.read()?.expose().to_owned(),
            episodes,
            tool_calls,
            tokens,
            duration_ms,
            purpose: (purpose != SpendPurpose::default()).then_some(purpose),
        };
        let spent = with_client(async |client| Ok(client.spend_work(&request, key.as_ref()).await?))?;
        self.format.print(&spent, |spent| {
            format!("{} has left: {}\n", spent.lease_id, view::format_amounts(&spent.remaining))
        })
    }
}

/// Gives a lease on work back, and with it whatever was derived from it.
///
/// Example: tenure work release 4f1d09aa-17 --token-file planner.token
#[derive(Debug, Args)]
pub struct Release {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    lease_id: String,
    #[command(flatten)]
    token: LeaseTokenArguments,
    #[command(flatten)]
    format: Format,
}

impl Release {
    /// Releases it.
    pub fn run(self) -> Result<(), Failure> {
        let token = self.token.read()?.expose().to_owned();
        let request = WorkReleaseRequest { lease_id: self.lease_id, token, reason: None };
        let lease = with_client(async |client| Ok(client.release_work(&request).await?))?;
        self.format.print(&LeaseResponse { lease }, |LeaseResponse { lease }| {
            let end = lease.end.as_deref().unwrap_or("RELEASED");
            format!("{} on {} is over: {end}\n", lease.id, lease.resource)
        })
    }
}

/// Shows a lease on work: what it allows, what was used up, and what is left.
///
/// Example: tenure work show 4f1d09aa-17
#[derive(Debug, Args)]
pub struct Show {
    /// The lease's id
    #[arg(value_name = "LEASE")]
    lease_id: String,
    #[command(flatten)]
    format: Format,
}

impl Show {
    /// Asks for it and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let shown = with_client(async |client| Ok(client.work(&self.lease_id).await?))?;
        self.format.print(&shown, view::fields)
    }
}
