//! Who is to be told when its turn has come, by its ticket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::kernel::{Fence, Ticket, WaitEnd};

use super::proof::Proof;

/// How a wait ended.
#[derive(Debug, Clone)]
pub enum WaitOver {
    /// These leases are the waiter's, in the order asked for.
    Served {
        /// Their numbers.
        leases: Vec<Fence>,
        /// Their signature.
        proof: Option<Arc<Proof>>,
    },
    /// It left with nothing, or what it was granted was over before it could be told.
    Unserved(WaitEnd),
}

type Teller = Box<dyn FnOnce(WaitOver) + Send>;

/// Who is to be told. Several may wait behind one ticket: a request that is repeated under its key finds its place
/// again, and nobody knows yet that the first connection is dead.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<BTreeMap<Ticket, Vec<Teller>>>);

impl Waiters {
    /// Notes whom to tell. The end of the wait was not published yet: its answer comes before.
    pub(crate) fn add(&self, ticket: Ticket, tell: Teller) {
        self.lock().entry(ticket).or_default().push(tell);
    }

    /// Tells everybody behind this ticket, once.
    pub(crate) fn tell(&self, ticket: Ticket, over: &WaitOver) {
        let tellers = self.lock().remove(&ticket);
        tellers.into_iter().flatten().for_each(|tell| tell(over.clone()));
    }

    /// Nobody will be told any more. Whoever still waits finds its line cut, and asks again.
    pub(crate) fn cut(&self) {
        self.lock().clear();
    }

    // A teller that panicked was taken out before.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Ticket, Vec<Teller>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
