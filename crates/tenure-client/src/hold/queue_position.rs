//! Where in the queue one is, for people.

use std::time::Duration;

use tenure_api::{AcquireRequest, Lease, Waiter};
use tokio::time::sleep;

use super::hold_request::{LeaseRequest, QueueCallback};
use crate::calls::LeaseFilter;
use crate::client::Client;
use crate::error::Error;

/// Where in the queue one is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuePosition {
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
const FIRST_REPORT_DELAY: Duration = Duration::from_millis(200);
/// Often enough for people, rarely enough for the server.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// Tells where one is until it is stopped, or nobody can say.
pub(super) async fn report_position(
    client: Client,
    request: std::sync::Arc<LeaseRequest>,
    mut callback: QueueCallback,
) {
    sleep(FIRST_REPORT_DELAY).await;
    loop {
        match find_position(&client, &request).await {
            Ok(Some(place)) => callback(place),
            Ok(None) => {}
            // A server that does not know the question, or does not answer us.
            Err(Error::Problem(problem)) if !problem.code.is_retryable() => return,
            Err(_) => {}
        }
        sleep(REPORT_INTERVAL).await;
    }
}

async fn find_position(client: &Client, request: &LeaseRequest) -> Result<Option<QueuePosition>, Error> {
    let mut last: Option<QueuePosition> = None;
    for lease in &request.leases {
        let Some(resource) = queued_resource(client, &lease.resource).await? else { continue };
        let explanation = client.explain(&resource).await?;
        let waiting = explanation.waiting.len();
        let Some(own) = own_waiters(request, explanation.waiting).pop() else { continue };
        if last.as_ref().is_none_or(|last| last.position < own.position) {
            last = Some(QueuePosition {
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
pub(super) async fn queued_resource(client: &Client, resource: &str) -> Result<Option<String>, Error> {
    let Some(pool) = pool_prefix(resource) else { return Ok(Some(resource.to_owned())) };
    let mut filter = LeaseFilter { limit: Some(1_000), ..LeaseFilter::default() };
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

/// Waiters that may be this request: the same holder, waiting for the same resources.
pub(super) fn own_waiters(request: &LeaseRequest, waiting: Vec<Waiter>) -> Vec<Waiter> {
    let matches = |lease: &AcquireRequest, name: &str| match pool_prefix(&lease.resource) {
        Some(pool) => name.starts_with(pool),
        None => lease.resource == name,
    };
    let is_own = |waiter: &Waiter| {
        let mut names = waiter.resources.iter();
        let mut leases = request.leases.iter();
        names.all(|name| request.leases.iter().any(|lease| matches(lease, name)))
            && leases.all(|lease| {
                lease.holder == waiter.holder && waiter.resources.iter().any(|name| matches(lease, name))
            })
    };
    waiting.into_iter().filter(is_own).collect()
}

/// What the members of a pool begin with, if it is one: `tuner:*` is any of `tuner:0`, `tuner:1`, …
pub(super) fn pool_prefix(resource: &str) -> Option<&str> {
    resource.strip_suffix('*').filter(|pool| pool.ends_with(':'))
}
