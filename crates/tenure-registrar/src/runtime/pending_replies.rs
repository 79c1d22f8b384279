//! Callers and waiters that a reply is due to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::kernel::{Fence, Ticket, WaitEnd};

use super::inbox::Responder;
use super::proof::BatchProof;
use crate::registrar::RequestId;

/// Numbers are given out one after the other and answered nearly in that order: no table is needed.
#[derive(Default)]
pub(crate) struct PendingReplies {
    /// The number of the first in the queue.
    first: u64,
    waiting: VecDeque<Option<Responder>>,
}

impl PendingReplies {
    pub(crate) fn add(&mut self, respond: Responder) -> RequestId {
        self.waiting.push_back(Some(respond));
        RequestId(self.first + self.waiting.len() as u64 - 1)
    }

    pub(crate) fn take(&mut self, caller: RequestId) -> Option<Responder> {
        let place = usize::try_from(caller.0.checked_sub(self.first)?).ok()?;
        let found = self.waiting.get_mut(place)?.take();
        while let Some(None) = self.waiting.front() {
            self.waiting.pop_front();
            self.first += 1;
        }
        found
    }
}

#[derive(Debug, Clone)]
pub enum WaitOutcome {
    /// These leases are the waiter's, in the order asked for.
    Served { leases: Vec<Fence>, proof: Option<Arc<BatchProof>> },
    /// It left with nothing, or what it was granted was over before it could be told.
    Unserved(WaitEnd),
    /// The granted leases expired before their grant was durable.
    TooLate,
}

/// Somebody who is to be told how a wait ended.
pub trait WaitListener: Send {
    /// Whether nobody is there any more, so that it need not be kept.
    fn is_closed(&self) -> bool;

    fn complete(self: Box<Self>, outcome: WaitOutcome);
}

#[derive(Default)]
struct TicketListeners {
    listeners: Vec<Box<dyn WaitListener>>,
    /// With so many it is time to look who is gone.
    prune_at: usize,
}

/// Who is to be told. Several may wait behind one ticket: a request that is repeated under its key finds its place
/// again, and nobody knows yet that the first connection is dead.
#[derive(Default)]
pub(crate) struct WaitListeners(Mutex<BTreeMap<Ticket, TicketListeners>>);

impl WaitListeners {
    /// Notes whom to tell. The end of the wait was not published yet: its answer comes before.
    pub(crate) fn add(&self, ticket: Ticket, listener: Box<dyn WaitListener>) {
        let mut waiters = self.0.lock();
        let TicketListeners { listeners, prune_at: look_at } = waiters.entry(ticket).or_default();
        // Who waits for hours repeats its request thousands of times, and hangs up each time. Looked at whenever there
        // are twice as many, they cost little, and take hardly more room than those who are there.
        if listeners.len() >= *look_at {
            listeners.retain(|listener| !listener.is_closed());
            *look_at = 2 * listeners.len() + 4;
        }
        listeners.push(listener);
    }

    /// Notifies every listener of this ticket, once.
    pub(crate) fn complete(&self, ticket: Ticket, outcome: &WaitOutcome) {
        let behind = self.0.lock().remove(&ticket);
        behind
            .into_iter()
            .flat_map(|behind| behind.listeners)
            .for_each(|listener| listener.complete(outcome.clone()));
    }

    /// Nobody will be told any more. Whoever still waits finds its line cut, and asks again.
    pub(crate) fn close_all(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    #[test]
    fn a_pending_reply_is_taken_once_in_any_order() {
        let mut callers = PendingReplies::default();
        let numbers: Vec<RequestId> = (0..5).map(|_| callers.add(Box::new(|_| {}))).collect();
        for index in [2, 0, 1, 4] {
            assert!(callers.take(numbers[index]).is_some());
            assert!(callers.take(numbers[index]).is_none(), "{index} was answered before");
        }
        let next = callers.add(Box::new(|_| {}));
        assert!(!numbers.contains(&next));
        assert!(callers.take(numbers[3]).is_some() && callers.take(next).is_some());
        assert!(callers.take(RequestId(99)).is_none() && callers.waiting.is_empty());
    }

    struct FakeListener {
        is_gone: bool,
        sender: Sender<()>,
    }

    impl WaitListener for FakeListener {
        fn is_closed(&self) -> bool {
            self.is_gone
        }

        fn complete(self: Box<Self>, _: WaitOutcome) {
            let _ = self.sender.send(());
        }
    }

    #[test]
    fn closed_wait_listeners_are_pruned() {
        let (waiters, ticket) = (WaitListeners::default(), Ticket(1));
        let (sender, receiver) = channel();
        for number in 0..100_000 {
            let is_gone = number % 10_000 != 0;
            waiters.add(ticket, Box::new(FakeListener { is_gone, sender: sender.clone() }));
            let kept = waiters.0.lock()[&ticket].listeners.len();
            assert!(kept <= 32, "{kept} are kept after {number}");
        }
        waiters.complete(ticket, &WaitOutcome::Unserved(WaitEnd::TimedOut));
        assert!(receiver.try_iter().count() >= 10, "everybody who is there is told");
        assert!(waiters.0.lock().is_empty());
    }
}
