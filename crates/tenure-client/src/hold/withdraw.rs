//! Leaves nothing behind when nobody wants the lease any more.
//!
//! With an idempotency key the server keeps a place in the queue even though its connection ended: it could be a lost
//! connection. So whoever gives up must say so, or a lease that nobody wants would come some day.

use std::time::Duration;

use tenure_api::{Code, LeaseState};

use super::hold_request::LeaseRequest;
use super::queue_position::{own_waiters, pool_prefix, queued_resource};
use super::requests::RequestOutcome;
use crate::calls::LeaseFilter;
use crate::client::Client;
use crate::error::Error;

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
