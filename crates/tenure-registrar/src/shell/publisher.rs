//! Tells the world what is durable: first the view, then who listens, then who asked.
//!
//! The writer hands this over and goes on with the next batch, so that on a busy machine deciding and telling use a core
//! each. With little to do it tells by itself: waking another thread would take longer than telling.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use tenure_core::kernel::{Event, Fence, Ticket, WaitEnd};
use tenure_ledger::Seq;
use tenure_ledger::signing::{LedgerId, SealedBatch};

use super::callers::{WaitOver, Waiters};
use super::feed::{Durable, Feed};
use super::inbox::{Responder, Response};
use super::proof::Proof;
use super::view::View;
use crate::registrar::Reply;

#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) events: Vec<Event>,
    /// What was written, and its signature.
    pub(crate) written: Option<(Durable, SealedBatch)>,
    pub(crate) answers: Vec<(Responder, Reply)>,
    /// Whose wait is over. Told after the answers: one of them may be where a waiter learns of its ticket.
    pub(crate) told: Vec<(Ticket, Told)>,
}

/// How a wait ended, before its signature is known.
pub(crate) enum Told {
    Served(Vec<Fence>),
    Unserved(WaitEnd),
}

/// Whom to tell, beside who asked.
#[derive(Clone)]
pub(crate) struct Audience {
    pub(crate) ledger: LedgerId,
    pub(crate) view: Arc<View>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) waiters: Arc<Waiters>,
}

pub(crate) struct Publisher {
    audience: Audience,
    sender: Option<SyncSender<Outcome>>,
    /// How many were handed over and not told yet.
    under_way: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// With so few to answer, the writer does it by itself.
const FEW: usize = 16;

/// How many may wait to be told. Then the writer waits too: it must not run away from those who listen.
const WAITING: usize = 4;

impl Publisher {
    pub(crate) fn start(audience: Audience) -> std::io::Result<Publisher> {
        let (sender, receiver) = sync_channel::<Outcome>(WAITING);
        let under_way = Arc::new(AtomicUsize::new(0));
        let (told, to_tell) = (under_way.clone(), audience.clone());
        let thread = std::thread::Builder::new().name("tenure-publisher".into()).spawn(move || {
            for outcome in receiver {
                to_tell.tell(outcome);
                told.fetch_sub(1, Ordering::Release);
            }
        })?;
        Ok(Publisher { audience, sender: Some(sender), under_way, thread: Some(thread) })
    }

    /// Tells, in the order of the calls.
    pub(crate) fn publish(&self, outcome: Outcome) {
        let is_alone = self.under_way.load(Ordering::Acquire) == 0;
        if is_alone && outcome.answers.len() <= FEW {
            return self.audience.tell(outcome);
        }
        self.under_way.fetch_add(1, Ordering::AcqRel);
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

impl Audience {
    fn tell(&self, outcome: Outcome) {
        let Outcome { events, written, answers, told } = outcome;
        let observer = self.feed.observer();
        // Every event is one record of the batch.
        let first = written.as_ref().map_or(0, |(durable, _)| durable.batch.first().0);
        if !events.is_empty() {
            self.view.publish(&events, |index, event, before| {
                if let Some(observer) = observer {
                    observer.happens(Seq(first + index), event, before);
                }
            });
        }
        let proof = written.map(|(batch, sealed)| {
            let took = batch.took;
            self.feed.publish(batch);
            if let Some(observer) = observer {
                observer.told(took);
            }
            Arc::new(Proof::new(self.ledger, sealed, &events))
        });
        for (respond, reply) in answers {
            respond(Response { reply, proof: proof.clone() });
        }
        for (ticket, told) in told {
            let over = match told {
                Told::Served(leases) => WaitOver::Served { leases, proof: proof.clone() },
                Told::Unserved(end) => WaitOver::Unserved(end),
            };
            self.waiters.tell(ticket, &over);
        }
    }
}
