//! `tenure list`.

use clap::{Args, ValueEnum};
use tenure_api::{Lease, LeasePage, LeaseState};
use tenure_client::{Client, LeaseFilter};

use super::lease_view;
use crate::client::with_client;
use crate::failure::Failure;
use crate::output::Format;

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
        self.format.print_table(&LeasePage { leases, next: None }, "No leases.\n", |all| {
            lease_view::table(&all.leases)
        })
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
