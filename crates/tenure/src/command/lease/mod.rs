//! Commands on one lease: show, renew, release, transfer and revoke.

pub mod explain;
pub mod request;
pub mod run;
pub mod view;
pub mod watch;
pub mod who;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tenure_api::{Lease, LeaseGrants, LeasePage, LeaseResponse, LeaseState};
use tenure_client::{Client, IdempotencyKey, LeaseFilter};

use self::request::{LeaseRequestArguments, LeaseTokenArguments};
use crate::client::with_client;
use crate::duration::{format_short, parse_milliseconds};
use crate::exit;
use crate::failure::Failure;
use crate::output::{Format, write_json, write_text};

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
        self.format.print(&LeaseResponse { lease }, |one| view::fields(&one.lease))
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
            request::write(path, &granted.token)?;
            granted.token.clear();
        }
        self.format
            .print(&granted, |granted| view::granted_lease_table(granted, self.new_token_file.is_none()))
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

/// Takes a lease, and prints its id, its fence and the token that renews and releases it.
///
/// Nobody renews it for you: `tenure renew` does, or it runs out. To run one command under a lease, `tenure run` is
/// simpler and safer. Several resources are taken all at once or not at all. Exit code 75: somebody else has it.
///
/// Example: tenure acquire deploy:prod --ttl 5m --wait 1m --token-file lease.token
#[derive(Debug, Args)]
pub struct Acquire {
    /// What to take, as `domain:name`; `pool:*` is any free one of a pool
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<String>,
    #[command(flatten)]
    request: LeaseRequestArguments,
    /// How long to wait for it [default: not at all]
    #[arg(long, value_name = "DURATION", value_parser = parse_milliseconds, default_value = "0s", hide_default_value = true)]
    wait: u64,
    /// Makes the request one and the same however often it is sent: 1 to 255 visible characters
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Write the token to this file, which only its owner can read, and not to standard output
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Acquire {
    /// Asks for the lease.
    pub fn run(self) -> Result<(), Failure> {
        let key = self.key.as_deref().map(IdempotencyKey::parse).transpose();
        let key = key.map_err(|error| Failure::new(exit::USAGE, "--key cannot be used", &error))?;
        if self.token_file.is_some() && self.resources.len() > 1 {
            return Err(Failure::from_message(
                exit::USAGE,
                "--token-file is for one resource: each lease has a token of its own",
            ));
        }
        let requests = self.request.requests(self.resources, self.wait);
        let mut leases = with_client(async |client| match &requests[..] {
            [request] => Ok(vec![client.acquire(request, key.as_ref()).await?]),
            requests => Ok(client.acquire_all(requests, key.as_ref()).await?),
        })?;
        if let Some(path) = &self.token_file {
            for granted in &mut leases {
                request::write(path, &granted.token)?;
                granted.token.clear();
            }
        }
        match (&leases[..], self.format.json) {
            ([granted], true) => write_json(granted)?,
            (_, true) => write_json(&LeaseGrants { leases })?,
            (all, false) => {
                let texts = all
                    .iter()
                    .map(|granted| view::granted_lease_table(granted, self.token_file.is_none()).to_string());
                write_text(&texts.collect::<Vec<_>>().join("\n"))?;
            }
        }
        Ok(())
    }
}

/// As many as the server tells at once.
const PAGE_SIZE: usize = 1_000;

/// Shows which leases there are, in the order in which they were granted.
///
/// Without more words those that live. Ended ones are remembered for a while only; `tenure log` shows all that happened.
///
/// Example: tenure list --resource deploy:prod
#[derive(Debug, Args)]
pub struct List {
    /// Only those on this resource
    #[arg(long)]
    resource: Option<String>,
    /// Only those of this holder
    #[arg(long)]
    holder: Option<String>,
    /// Only those in this state [default: active]
    #[arg(long, value_enum, conflicts_with = "all")]
    state: Option<StateFilter>,
    /// Those that are over, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateFilter {
    /// They live
    Active,
    /// They ran out
    Expired,
    /// They were given back or taken away
    Released,
}

impl List {
    /// Reads the list to its end and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let states = match self.state {
            _ if self.all => vec![LeaseState::Active, LeaseState::Expired, LeaseState::Released],
            None | Some(StateFilter::Active) => vec![LeaseState::Active],
            Some(StateFilter::Expired) => vec![LeaseState::Expired],
            Some(StateFilter::Released) => vec![LeaseState::Released],
        };
        let leases = with_client(async |client| {
            let mut leases = Vec::new();
            for state in states {
                let (resource, holder) = (self.resource.clone(), self.holder.clone());
                let filter =
                    LeaseFilter { resource, holder, state: Some(state), limit: Some(PAGE_SIZE), after: None };
                leases.extend(list_all(&client, filter).await?);
            }
            Ok(leases)
        });
        let mut leases = leases?;
        leases.sort_by_key(|lease| lease.fence);
        // What ended between two questions was told twice.
        leases.dedup_by_key(|lease| lease.fence);
        self.format
            .print_table(&LeasePage { leases, next: None }, "No leases.\n", |all| view::table(&all.leases))
    }
}

/// Every lease that fits.
pub async fn list_all(client: &Client, mut filter: LeaseFilter) -> Result<Vec<Lease>, Failure> {
    let mut leases = Vec::new();
    loop {
        let page = client.list(&filter).await?;
        leases.extend(page.leases);
        if page.next.is_none() {
            return Ok(leases);
        }
        filter.after = page.next;
    }
}
