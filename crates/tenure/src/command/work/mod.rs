//! `tenure work`.

mod view;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tenure_api::{
    Budget, BudgetLimits, LeaseResponse, SpendPurpose, WorkClaimRequest, WorkDerivationRequest,
    WorkReleaseRequest, WorkScope, WorkSpendRequest,
};
use tenure_client::IdempotencyKey;

pub use self::view::format_amounts;
use crate::client::with_client;
use crate::command::lease::request::LeaseTokenArguments;
use crate::duration::parse_milliseconds;
use crate::exit;
use crate::failure::Failure;
use crate::output::Format;

/// Leases on work that say what their holder may do, and how much of it.
#[derive(Debug, Args)]
pub struct Work {
    #[command(subcommand)]
    command: WorkCommand,
}

#[derive(Debug, Subcommand)]
enum WorkCommand {
    Claim(Claim),
    Derive(Derive),
    Spend(Spend),
    Show(Show),
    Release(Release),
}

impl Work {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            WorkCommand::Claim(claim) => claim.run(),
            WorkCommand::Derive(derive) => derive.run(),
            WorkCommand::Spend(spend) => spend.run(),
            WorkCommand::Show(show) => show.run(),
            WorkCommand::Release(release) => release.run(),
        }
    }
}

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

/// How much.
#[derive(Debug, Args)]
pub struct BudgetArguments {
    /// How many times an agent is run
    #[arg(long, value_name = "NUMBER")]
    episodes: Option<u64>,
    /// How many tools are called
    #[arg(long, value_name = "NUMBER")]
    tool_calls: Option<u64>,
    /// How many tokens are read and written
    #[arg(long, value_name = "NUMBER")]
    tokens: Option<u64>,
    /// For how long something runs
    #[arg(long, value_name = "DURATION", value_parser = parse_milliseconds)]
    duration: Option<u64>,
}

impl BudgetArguments {
    /// As bounds: what is not named has none.
    pub fn bounds(&self) -> BudgetLimits {
        let BudgetArguments { episodes, tool_calls, tokens, duration } = *self;
        BudgetLimits { episodes, tool_calls, tokens, duration_ms: duration }
    }

    /// As amounts: what is not named is nothing.
    pub fn budget(&self) -> Budget {
        let BudgetLimits { episodes, tool_calls, tokens, duration_ms } = self.bounds();
        let amount = Option::unwrap_or_default;
        Budget {
            episodes: amount(episodes),
            tool_calls: amount(tool_calls),
            tokens: amount(tokens),
            duration_ms: amount(duration_ms),
        }
    }
}

/// What is allowed.
#[derive(Debug, Args)]
pub struct ScopeArguments {
    /// Allow work on this; can be repeated. With none of the three everything is allowed that can be
    #[arg(long = "work", value_name = "WORK")]
    work_ids: Vec<String>,
    /// Allow this tool; can be repeated
    #[arg(long = "tool", value_name = "TOOL")]
    tools: Vec<String>,
    /// Allow this namespace and what is below it at `/`; can be repeated
    #[arg(long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
}

impl ScopeArguments {
    /// What is named, if anything is.
    pub fn scope(self) -> Option<WorkScope> {
        let ScopeArguments { work_ids, tools, namespaces } = self;
        let is_named = !work_ids.is_empty() || !tools.is_empty() || !namespaces.is_empty();
        is_named.then_some(WorkScope { work_ids, tools, namespaces })
    }
}

/// What makes a request one and the same however often it is sent.
#[derive(Debug, Args)]
pub struct IdempotencyKeyArguments {
    /// Makes the request one and the same however often it is sent: 1 to 255 visible characters
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl IdempotencyKeyArguments {
    /// Reads it.
    pub fn read(&self) -> Result<Option<IdempotencyKey>, Failure> {
        let key = self.key.as_deref().map(IdempotencyKey::parse).transpose();
        key.map_err(|error| Failure::new(exit::USAGE, "--key cannot be used", &error))
    }
}
