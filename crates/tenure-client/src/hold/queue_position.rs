//! Position in the queue, for display, and withdrawal of an abandoned wait.

use std::time::Duration;

use tenure_api::{AcquireRequest, Code, Lease, LeaseState, Waiter};
use tokio::time::sleep;

use super::requests::RequestOutcome;
use super::{LeaseRequest, QueueCallback};
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

/// How long the answer to a question about our own lease may take. If it is not there, we are in the queue again.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// One try. `is_under_way` is whether the request for the lease may still be answered: then that answer says what came
/// of it.
pub(super) async fn withdraw(
    client: &Client,
    request: &LeaseRequest,
    is_acquire_pending: bool,
) -> RequestOutcome {
    let mut is_queued = false;
    if request.has_wait() {
        match leave_queue(client, request).await {
            Ok(WithdrawOutcome::Withdrawn) => return RequestOutcome::Withdrawn,
            Ok(WithdrawOutcome::NotQueued) => {}
            Err(error) if error.is_transient() => return RequestOutcome::Failed(error),
            // Then a lease that comes is given back when it comes.
            Ok(WithdrawOutcome::Ambiguous) | Err(_) => is_queued = true,
        }
    }
    if is_acquire_pending {
        return RequestOutcome::Pending { is_queued };
    }
    match may_hold(client, request).await {
        Ok(false) => return RequestOutcome::Withdrawn,
        Err(error) if error.is_transient() => return RequestOutcome::Failed(error),
        Ok(true) | Err(_) => {}
    }
    // Its token comes only with the answer to the same request.
    let mut call = request.to_api_request();
    call.timeout = PROBE_TIMEOUT;
    match request.send(client, &call, || {}).await {
        Ok(granted) => RequestOutcome::Granted(granted),
        Err(error) if error.is_transient() => RequestOutcome::Failed(error),
        Err(_) => RequestOutcome::Withdrawn,
    }
}

/// What came of leaving the queue.
enum WithdrawOutcome {
    Withdrawn,
    /// Not in it yet, or not any more.
    NotQueued,
    /// Two waits of one holder for the same thing look alike, and the other one is not ours to end.
    Ambiguous,
}

async fn leave_queue(client: &Client, request: &LeaseRequest) -> Result<WithdrawOutcome, Error> {
    let Some(first) = request.leases.first() else { return Ok(WithdrawOutcome::NotQueued) };
    let Some(resource) = queued_resource(client, &first.resource).await? else {
        return Ok(WithdrawOutcome::NotQueued);
    };
    let queue = client.queue(&resource).await?;
    let own = own_waiters(request, queue.waiting);
    let [waiter] = &own[..] else {
        return Ok(if own.is_empty() { WithdrawOutcome::NotQueued } else { WithdrawOutcome::Ambiguous });
    };
    match client.withdraw(waiter.ticket).await {
        Ok(()) => Ok(WithdrawOutcome::Withdrawn),
        // Served at this very moment.
        Err(error) if error.code() == Some(Code::NotFound) => Ok(WithdrawOutcome::NotQueued),
        Err(error) => Err(error),
    }
}

/// Whether the holder has a lease on the first resource, which may be ours.
async fn may_hold(client: &Client, request: &LeaseRequest) -> Result<bool, Error> {
    let Some(first) = request.leases.first() else { return Ok(false) };
    let filter = LeaseFilter {
        // A pool's lease names the member that was free.
        resource: Some(first.resource.clone()).filter(|resource| pool_prefix(resource).is_none()),
        holder: Some(first.holder.clone()),
        state: Some(LeaseState::Active),
        ..LeaseFilter::default()
    };
    Ok(!client.list(&filter).await?.leases.is_empty())
}
