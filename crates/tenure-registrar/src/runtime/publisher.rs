//! Publishes what is durable: first to the view, then to observers and subscribers, then to the callers.
//!
//! The writer hands this over and goes on with the next batch, so that on a busy machine deciding and telling use a core
//! each. With little to do it tells by itself: waking another thread would take longer than telling.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use tenure_core::kernel::{Event, Fence, Ticket, WaitEnd};
use tenure_ledger::Seq;
use tenure_ledger::signing::{LedgerId, SignedBatch};

use super::feed::{DurableBatch, Feed};
use super::inbox::{Responder, Response};
use super::pending_replies::{WaitListeners, WaitOutcome};
use super::proof::BatchProof;
use super::view::StateView;
use crate::registrar::Reply;

#[derive(Default)]
pub(crate) struct Publication {
    pub(crate) events: Vec<Event>,
    /// What was written, and its signature.
    pub(crate) written: Option<(DurableBatch, SignedBatch)>,
    pub(crate) answers: Vec<(Responder, Reply)>,
    /// Whose wait is over. Told after the answers: one of them may be where a waiter learns of its ticket.
    pub(crate) ended_tickets: Vec<(Ticket, PendingWaitOutcome)>,
}

/// How a wait ended, before its signature is known.
pub(crate) enum PendingWaitOutcome {
    Served(Vec<Fence>),
    Unserved(WaitEnd),
    TooLate,
}

/// Whom to tell, beside who asked.
#[derive(Clone)]
pub(crate) struct Subscribers {
    pub(crate) ledger: LedgerId,
    pub(crate) view: Arc<StateView>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) waiters: Arc<WaitListeners>,
}

pub(crate) struct Publisher {
    subscribers: Subscribers,
    sender: Option<SyncSender<Publication>>,
    /// How many were handed over and not told yet.
    queued_count: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// With so few to answer, the writer does it by itself.
const MAX_INLINE_REPLIES: usize = 16;

/// How many may wait to be told. Then the writer waits too: it must not run away from those who listen.
const MAX_QUEUED: usize = 4;

impl Publisher {
    pub(crate) fn start(subscribers: Subscribers) -> std::io::Result<Publisher> {
        let (sender, receiver) = sync_channel::<Publication>(MAX_QUEUED);
        let under_way = Arc::new(AtomicUsize::new(0));
        let (queued_count, thread_subscribers) = (under_way.clone(), subscribers.clone());
        let thread = std::thread::Builder::new().name("tenure-publisher".into()).spawn(move || {
            for outcome in receiver {
                thread_subscribers.notify(outcome);
                queued_count.fetch_sub(1, Ordering::Release);
            }
        })?;
        Ok(Publisher { subscribers, sender: Some(sender), queued_count: under_way, thread: Some(thread) })
    }

    /// Tells, in the order of the calls.
    pub(crate) fn publish(&self, outcome: Publication) {
        let is_alone = self.queued_count.load(Ordering::Acquire) == 0;
        if is_alone && outcome.answers.len() <= MAX_INLINE_REPLIES {
            return self.subscribers.notify(outcome);
        }
        self.queued_count.fetch_add(1, Ordering::AcqRel);
        let is_sent = self.sender.as_ref().is_some_and(|sender| sender.send(outcome).is_ok());
        assert!(is_sent, "the thread that tells has ended by a panic");
    }
}

impl Drop for Publisher {
    /// Everybody is told before this is over.
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Subscribers {
    fn notify(&self, outcome: Publication) {
        let Publication { events, written, answers, ended_tickets } = outcome;
        let observers = self.feed.observers();
        // Every event is one record of the batch.
        let first = written.as_ref().map_or(Seq(0), |(durable, _)| durable.batch.first());
        if !events.is_empty() {
            self.view.apply(first, &events, |applied| {
                observers.iter().for_each(|observer| observer.event_applied(applied));
            });
        }
        let proof = written.map(|(batch, signed)| {
            self.feed.publish(&batch);
            observers.iter().for_each(|observer| observer.batch_published(batch.write_time));
            Arc::new(BatchProof::new(self.ledger, signed, &events))
        });
        for (respond, reply) in answers {
            respond(Response { reply, proof: proof.clone() });
        }
        for (ticket, outcome) in ended_tickets {
            let outcome = match outcome {
                PendingWaitOutcome::Served(leases) => WaitOutcome::Served { leases, proof: proof.clone() },
                PendingWaitOutcome::Unserved(end) => WaitOutcome::Unserved(end),
                PendingWaitOutcome::TooLate => WaitOutcome::TooLate,
            };
            self.waiters.complete(ticket, &outcome);
        }
    }
}
