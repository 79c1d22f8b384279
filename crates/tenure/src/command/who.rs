//! `tenure who`.

use clap::Args;
use tenure_api::{Lease, Page};
use tenure_client::Filter;

use super::list::all;
use crate::duration::short;
use crate::exit;
use crate::failure::Failure;
use crate::output::{write_answer, write_text};
use crate::server::ask;

/// Says who holds a resource.
///
/// Exit code 0: somebody does. 1: nobody.
///
/// Example: tenure who deploy:prod || echo free
#[derive(Debug, Args)]
pub struct Who {
    /// What, as `domain:name`
    resource: String,
    /// Print one JSON value instead of text
    #[arg(long)]
    json: bool,
}

impl Who {
    /// Asks and answers.
    pub fn run(self) -> Result<(), Failure> {
        let filter = Filter { resource: Some(self.resource.clone()), ..Filter::default() };
        let leases = ask(async |client| all(&client, filter).await)?;
        let is_free = leases.is_empty();
        if self.json {
            write_answer(&Page { leases, next: None })?;
        } else if is_free {
            write_text(&format!("Nobody holds {}.\n", self.resource))?;
        } else {
            write_text(&leases.iter().map(line).collect::<String>())?;
        }
        if is_free { Err(Failure::silent(exit::NO)) } else { Ok(()) }
    }
}

fn line(lease: &Lease) -> String {
    let Lease { holder, mode, fence, id, .. } = lease;
    let waiting = match &lease.recall {
        Some(recall) if recall.waiting == 1 => "; 1 waits".to_owned(),
        Some(recall) => format!("; {} wait", recall.waiting),
        None => String::new(),
    };
    format!("{holder} ({mode}, fence {fence}, lease {id}), {} left{waiting}\n", short(lease.remaining_ms))
}
