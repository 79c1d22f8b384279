//! Where in the queue one is, for people.

use std::time::Duration;

use tenure_api::{Acquire, Lease, Waiter};
use tokio::time::sleep;

use super::holding::{OnQueue, Wish};
use crate::calls::Filter;
use crate::client::Client;
use crate::error::Error;

/// Where in the queue one is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The resource for which the wait is longest.
    pub resource: String,
    /// 1 is next.
    pub position: usize,
    /// How many wait for it.
    pub waiting: usize,
    /// Who holds it.
    pub held: Vec<Lease>,
    /// For how long one waits already.
    pub waited: Duration,
    /// Names the wait.
    pub ticket: u64,
}

/// A lease that comes at once needs no report.
const FIRST: Duration = Duration::from_millis(200);
/// Often enough for people, rarely enough for the server.
const EVERY: Duration = Duration::from_secs(2);

/// Tells where one is until it is stopped, or nobody can say.
pub(super) async fn tell(client: Client, wish: std::sync::Arc<Wish>, mut tell: OnQueue) {
    sleep(FIRST).await;
    loop {
        match place(&client, &wish).await {
            Ok(Some(place)) => tell(place),
            Ok(None) => {}
            // A server that does not know the question, or does not answer us.
            Err(Error::Problem(problem)) if !problem.code.is_retryable() => return,
            Err(_) => {}
        }
        sleep(EVERY).await;
    }
}

async fn place(client: &Client, wish: &Wish) -> Result<Option<Place>, Error> {
    let mut last: Option<Place> = None;
    for want in &wish.wants {
        let Some(resource) = queue_for(client, &want.resource).await? else { continue };
        let explanation = client.explain(&resource).await?;
        let waiting = explanation.waiting.len();
        let Some(own) = own(wish, explanation.waiting).pop() else { continue };
        if last.as_ref().is_none_or(|last| last.position < own.position) {
            last = Some(Place {
                resource: explanation.resource,
                position: own.position,
                waiting,
                held: explanation.held,
                waited: Duration::from_millis(own.waited_ms),
                ticket: own.ticket,
            });
        }
    }
    Ok(last)
}

/// Whose queue one stands in who waits for `resource`. Who waits for any member of a pool stands in the queue of each;
/// one that is held is in every list, and if none is held, nobody waits for long.
pub(super) async fn queue_for(client: &Client, resource: &str) -> Result<Option<String>, Error> {
    let Some(pool) = pool_of(resource) else { return Ok(Some(resource.to_owned())) };
    let mut filter = Filter { limit: Some(1_000), ..Filter::default() };
    loop {
        let page = client.list(&filter).await?;
        let mut held = page.leases.into_iter().map(|lease| lease.resource);
        if let Some(member) = held.find(|held| held.starts_with(pool)) {
            return Ok(Some(member));
        }
        if page.next.is_none() {
            return Ok(None);
        }
        filter.after = page.next;
    }
}

/// Those that may be this wish: the same holder, who waits for the same.
pub(super) fn own(wish: &Wish, waiting: Vec<Waiter>) -> Vec<Waiter> {
    let fits = |want: &Acquire, name: &str| match pool_of(&want.resource) {
        Some(pool) => name.starts_with(pool),
        None => want.resource == name,
    };
    let is_own = |waiter: &Waiter| {
        let mut names = waiter.resources.iter();
        let mut wants = wish.wants.iter();
        names.all(|name| wish.wants.iter().any(|want| fits(want, name)))
            && wants.all(|want| {
                want.holder == waiter.holder && waiter.resources.iter().any(|name| fits(want, name))
            })
    };
    waiting.into_iter().filter(is_own).collect()
}

/// What the members of a pool begin with, if it is one: `tuner:*` is any of `tuner:0`, `tuner:1`, …
pub(super) fn pool_of(resource: &str) -> Option<&str> {
    resource.strip_suffix('*').filter(|pool| pool.ends_with(':'))
}
