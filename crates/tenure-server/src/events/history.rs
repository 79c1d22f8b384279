//! Events older than the buffer, read from the ledger on a blocking thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{
    AgentEvent, AgentRecord, AgentWait, ClockAnchor, Event, Fence, FileSession, Holder, IntentSession,
    IntentSessionState, KernelState, LedgerTag, Resource, RetryTicket, Ticket, decode,
};
use tenure_ledger::{Batch, Seq};
use tenure_registrar::runtime::{Feed, FeedItem, StateView, Subscription};
use tokio::sync::OwnedSemaphorePermit;

use super::encoded_event::{EncodedEvent, EventSubject, PriorState};
use super::leases::{LeaseSnapshot, WaitRequest};

/// So many leases and waits are remembered while reading. What began before is looked up in the view.
const MAX_KNOWN: usize = 65_536;

/// So many sessions, and so many waits of agents, which may be large.
const MAX_KNOWN_SESSIONS: usize = 1_024;

pub(super) struct History {
    subscription: Subscription,
    after: u64,
    known: HistoryState,
    tag: LedgerTag,
    anchor: ClockAnchor,
    /// Held as long as old batches are in memory: they may be large.
    _turn: OwnedSemaphorePermit,
}

/// What was read so far of those that live, and where to look for the others.
struct HistoryState {
    leases: BTreeMap<Fence, LeaseSnapshot>,
    waiters: BTreeMap<Ticket, Arc<WaitRequest>>,
    sessions: BTreeMap<Holder, IntentSession>,
    pending: BTreeMap<Ticket, AgentWait>,
    view: Arc<StateView>,
}

/// The next part of the past.
pub(super) enum HistoryBatch {
    Events(Vec<Arc<EncodedEvent>>),
    /// There is no more of it.
    CaughtUp,
    Gone,
    Unreadable,
}

impl History {
    pub(super) fn new(
        feed: &Arc<Feed>,
        view: &Arc<StateView>,
        after: u64,
        read_slot: OwnedSemaphorePermit,
    ) -> Self {
        let clock = |state: &KernelState| state.clock().map_or(ClockAnchor::default(), |clock| clock.anchor);
        let (tag, anchor) = view.read(|state| (state.ledger_tag(), clock(state)));
        let known = HistoryState {
            leases: BTreeMap::new(),
            waiters: BTreeMap::new(),
            sessions: BTreeMap::new(),
            pending: BTreeMap::new(),
            view: view.clone(),
        };
        Self { subscription: feed.subscribe(Seq(after)), after, known, tag, anchor, _turn: read_slot }
    }

    /// Reads on. It waits for the disk.
    pub(super) fn next(&mut self) -> HistoryBatch {
        match self.subscription.next(Duration::ZERO) {
            FeedItem::Batch(batch) => {
                self.events_of(&batch).map_or(HistoryBatch::Unreadable, HistoryBatch::Events)
            }
            FeedItem::Nothing | FeedItem::Ended => HistoryBatch::CaughtUp,
            FeedItem::Compacted { .. } => HistoryBatch::Gone,
            _ => HistoryBatch::Unreadable,
        }
    }

    /// `None`: an event that this version does not know.
    fn events_of(&mut self, batch: &Batch) -> Option<Vec<Arc<EncodedEvent>>> {
        let mut events = Vec::new();
        for (seq, record) in (batch.first.0..).zip(&batch.records) {
            // Entries about keys are no events of leases.
            let Some(event) = decode(record, self.tag).ok()? else { continue };
            let encoded = EncodedEvent::new(seq, &event, &self.known, self.tag, self.anchor);
            self.anchor = encoded.clock_anchor();
            self.known.learn(&event, &encoded.subject);
            if seq > self.after {
                events.push(Arc::new(encoded));
            }
        }
        Some(events)
    }
}

impl HistoryState {
    fn learn(&mut self, event: &Event, about: &EventSubject) {
        match (event, about) {
            (_, EventSubject::Lease(facts)) if facts.end.is_some() => {
                self.leases.remove(&facts.fence);
            }
            (_, EventSubject::Lease(facts))
                if self.leases.len() < MAX_KNOWN || self.leases.contains_key(&facts.fence) =>
            {
                self.leases.insert(facts.fence, facts.clone());
            }
            (Event::Queued(queued), EventSubject::Wait(wait)) if self.waiters.len() < MAX_KNOWN => {
                self.waiters.extend(wait.request.clone().map(|request| (queued.ticket, request)));
            }
            (_, EventSubject::IntentSession(Some(then)))
                if then.session.state == IntentSessionState::Ended =>
            {
                self.sessions.remove(&then.session.id);
            }
            (_, EventSubject::IntentSession(Some(then))) if self.sessions.len() < MAX_KNOWN_SESSIONS => {
                self.sessions.insert(then.session.id.clone(), then.session.clone());
            }
            (Event::Left { ticket, .. }, _) => {
                self.waiters.remove(ticket);
            }
            _ => {}
        }
        if let Event::Agent(event) = event {
            match &**event {
                AgentEvent::Waits(pending) if self.pending.len() < MAX_KNOWN_SESSIONS => {
                    self.pending.insert(pending.ticket, pending.clone());
                }
                AgentEvent::Left { ticket, .. } => {
                    self.pending.remove(ticket);
                }
                _ => {}
            }
        }
        // Whoever was served waits no longer.
        if let Event::Issued(issued) = event
            && let Some(ticket) = issued.ticket
        {
            self.waiters.remove(&ticket);
            self.pending.remove(&ticket);
        }
    }
}

impl PriorState for HistoryState {
    fn lease(&self, fence: Fence) -> Option<LeaseSnapshot> {
        let later = |state: &KernelState| {
            let live = state.lease(fence).map(LeaseSnapshot::of_active);
            let facts = live.or_else(|| state.ended_lease(fence).map(LeaseSnapshot::of_ended))?;
            Some(LeaseSnapshot { is_later: true, ..facts })
        };
        self.leases.get(&fence).cloned().or_else(|| self.view.read(later))
    }

    fn waiter(&self, ticket: Ticket) -> Option<Arc<WaitRequest>> {
        self.waiters.get(&ticket).cloned()
    }

    fn queue_length(&self, _: &Resource) -> Option<usize> {
        None
    }

    fn intent_session(&self, id: &Holder) -> Option<IntentSession> {
        let later = || self.view.read(|state| state.intent_session(id).cloned());
        self.sessions.get(id).cloned().or_else(later)
    }

    fn intent_sessions_revision(&self) -> u64 {
        0
    }

    /// As it is now: what changes of an agent is in the event itself.
    fn agent(&self, id: &Holder) -> Option<AgentRecord> {
        self.view.read(|state| state.agent(id).cloned())
    }

    fn pending(&self, ticket: Ticket) -> Option<AgentWait> {
        self.pending.get(&ticket).cloned()
    }

    /// As it is now: who it is does not change.
    fn file_session(&self, id: &Holder) -> Option<FileSession> {
        self.view.read(|state| state.file_session(id).cloned())
    }

    /// As it is now: what it is for does not change.
    fn file_ticket(&self, ticket: Ticket) -> Option<RetryTicket> {
        self.view.read(|state| state.retry_ticket(ticket).cloned())
    }
}
