//! Queue tickets from before the start: no request waits for them until it is repeated under its key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_core::kernel::{Command, Fence, KernelState, Principal, RevocationCause, Ticket, WaitEnd};
use tenure_registrar::runtime::Handle;
use tokio::time::sleep;

use super::retry_queue::RetryQueue;

/// How long a waiter has to come back after a start.
const REATTACH_TIMEOUT: Duration = Duration::from_secs(10);

/// The waits that nobody stands behind, and whose they are.
#[derive(Default)]
pub(super) struct RecoveredTickets(Mutex<BTreeMap<Ticket, Principal>>);

impl RecoveredTickets {
    /// Sees to those who waited when the last server ended. Nobody else may ask before this is done.
    ///
    /// Who has no key cannot come back, and leaves at once. Its turn may have come already, in the writer's first
    /// moments: then it holds what it will never hear of, and that ends too.
    pub(super) fn open(handle: &Handle, retry_queue: &RetryQueue) -> Arc<Self> {
        let tickets = |has_key: bool| {
            handle.view().read(|state| {
                let tickets = state.queue_tickets().filter(|waiting| waiting.has_key == has_key);
                tickets.map(|waiting| (waiting.ticket, waiting.principal.clone())).collect::<BTreeMap<_, _>>()
            })
        };
        for (ticket, principal) in tickets(false) {
            retry_queue.submit(Command::Withdraw { ticket, principal, end: WaitEnd::Gone });
        }
        // When this is answered, so is everything before it.
        handle.submit_and_wait(Command::Expire { max_ended: 1 });
        for (lease, by) in handle.view().read(leases_without_waiter) {
            let detail = Arc::from("its waiter was gone when the server started again");
            retry_queue.submit(Command::Revoke { lease, cause: RevocationCause::Disconnected, by, detail });
        }
        Arc::new(Self(Mutex::new(tickets(true))))
    }

    /// Lets whoever does not come back in time leave.
    pub(super) async fn withdraw_unclaimed(self: Arc<Self>, retry_queue: RetryQueue) {
        if self.0.lock().is_empty() {
            return;
        }
        sleep(REATTACH_TIMEOUT).await;
        let gone = std::mem::take(&mut *self.0.lock());
        for (ticket, principal) in gone {
            retry_queue.submit(Command::Withdraw { ticket, principal, end: WaitEnd::Gone });
        }
    }

    /// Somebody stands behind this ticket again.
    pub(super) fn reattach(&self, ticket: Ticket) {
        self.0.lock().remove(&ticket);
    }
}

/// The leases that began after the writer did and that no request finds again. Before anybody could ask, only those
/// who waited can have got any. An agent's wait needs no key: the same manifest finds what came of it.
fn leases_without_waiter(state: &KernelState) -> Vec<(Fence, Principal)> {
    let Some(clock) = state.clock() else { return Vec::new() };
    let started = clock.anchor.tick;
    let leases = state.leases_from(Fence::default());
    let without_waiter = leases.filter(|lease| {
        lease.terms.issued_at > started && !lease.has_key && !lease.terms.mode.is_agent_mode()
    });
    without_waiter.map(|lease| (lease.fence, lease.principal.clone())).collect()
}
