//! Leaves nothing behind when nobody wants the lease any more.
//!
//! With an idempotency key the server keeps a place in the queue even though its connection ended: it could be a lost
//! connection. So whoever gives up must say so, or a lease that nobody wants would come some day.

use std::time::Duration;

use tenure_api::{Code, LeaseState};

use super::holding::Wish;
use super::place::{own, pool_of, queue_for};
use super::requests::What;
use crate::calls::Filter;
use crate::client::Client;
use crate::error::Error;

/// How long the answer to a question about our own lease may take. If it is not there, we are in the queue again.
const ASKED_AGAIN: Duration = Duration::from_secs(5);

/// One try. `is_under_way` is whether the request for the lease may still be answered: then that answer says what came
/// of it.
pub(super) async fn withdraw(client: &Client, wish: &Wish, is_under_way: bool) -> What {
    let mut is_in_line = false;
    if wish.waits() {
        match leave(client, wish).await {
            Ok(Left::Yes) => return What::Withdrawn,
            Ok(Left::NotThere) => {}
            Err(error) if error.passes() => return What::Failed(error),
            // Then a lease that comes is given back when it comes.
            Ok(Left::Ambiguous) | Err(_) => is_in_line = true,
        }
    }
    if is_under_way {
        return What::Pending { is_in_line };
    }
    match may_hold(client, wish).await {
        Ok(false) => return What::Withdrawn,
        Err(error) if error.passes() => return What::Failed(error),
        Ok(true) | Err(_) => {}
    }
    // Its token comes only with the answer to the same request.
    let mut call = wish.call();
    call.patience = ASKED_AGAIN;
    match wish.ask(client, &call, || {}).await {
        Ok(granted) => What::Granted(granted),
        Err(error) if error.passes() => What::Failed(error),
        Err(_) => What::Withdrawn,
    }
}

/// What came of leaving the queue.
enum Left {
    Yes,
    /// Not in it yet, or not any more.
    NotThere,
    /// Two waits of one holder for the same thing look alike, and the other one is not ours to end.
    Ambiguous,
}

async fn leave(client: &Client, wish: &Wish) -> Result<Left, Error> {
    let Some(first) = wish.wants.first() else { return Ok(Left::NotThere) };
    let Some(resource) = queue_for(client, &first.resource).await? else { return Ok(Left::NotThere) };
    let queue = client.queue(&resource).await?;
    let own = own(wish, queue.waiting);
    let [waiter] = &own[..] else {
        return Ok(if own.is_empty() { Left::NotThere } else { Left::Ambiguous });
    };
    match client.withdraw(waiter.ticket).await {
        Ok(()) => Ok(Left::Yes),
        // Served at this very moment.
        Err(error) if error.code() == Some(Code::NotFound) => Ok(Left::NotThere),
        Err(error) => Err(error),
    }
}

/// Whether the holder has a lease on the first resource, which may be ours.
async fn may_hold(client: &Client, wish: &Wish) -> Result<bool, Error> {
    let Some(first) = wish.wants.first() else { return Ok(false) };
    let filter = Filter {
        // A pool's lease names the member that was free.
        resource: Some(first.resource.clone()).filter(|resource| pool_of(resource).is_none()),
        holder: Some(first.holder.clone()),
        state: Some(LeaseState::Active),
        ..Filter::default()
    };
    Ok(!client.list(&filter).await?.leases.is_empty())
}
