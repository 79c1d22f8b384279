//! Where in the queue one is, for people.

use std::time::Duration;

use tenure_api::{Lease, Waiter};
use tokio::time::sleep;

use super::holding::{OnQueue, Wish};
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
        let explanation = client.explain(&want.resource).await?;
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

/// Those that may be this wish: the same holder, who waits for the same.
pub(super) fn own(wish: &Wish, waiting: Vec<Waiter>) -> Vec<Waiter> {
    let mut wanted: Vec<_> = wish.wants.iter().map(|want| want.resource.as_str()).collect();
    wanted.sort_unstable();
    let is_own = |waiter: &Waiter| {
        let mut resources: Vec<_> = waiter.resources.iter().map(String::as_str).collect();
        resources.sort_unstable();
        resources == wanted && wish.wants.iter().all(|want| want.holder == waiter.holder)
    };
    waiting.into_iter().filter(is_own).collect()
}
