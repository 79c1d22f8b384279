//! What happened before memory begins, read from the ledger on a thread that may wait for the disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{
    Agent, AgentEvent, Anchor, Event, Fence, FileSession, FileTicket, Holder, LedgerTag, Pending, Resource,
    Session, SessionState, State, Ticket, decode,
};
use tenure_ledger::{Batch, Seq};
use tenure_registrar::shell::{Feed, Next, Subscription, View};
use tokio::sync::OwnedSemaphorePermit;

use super::facts::{Asked, Facts};
use super::happened::{About, Before, Happened};

/// So many leases and waits are remembered while reading. What began before is looked up in the view.
const MOST_KNOWN: usize = 65_536;

/// So many sessions, and so many waits of agents, which may be large.
const MOST_KNOWN_SESSIONS: usize = 1_024;

pub(super) struct History {
    subscription: Subscription,
    after: u64,
    known: Known,
    tag: LedgerTag,
    anchor: Anchor,
    /// Held as long as old batches are in memory: they may be large.
    _turn: OwnedSemaphorePermit,
}

/// What was read so far of those that live, and where to look for the others.
struct Known {
    leases: BTreeMap<Fence, Facts>,
    waits: BTreeMap<Ticket, Arc<Asked>>,
    sessions: BTreeMap<Holder, Session>,
    pending: BTreeMap<Ticket, Pending>,
    view: Arc<View>,
}

/// The next part of the past.
pub(super) enum Past {
    Events(Vec<Arc<Happened>>),
    /// There is no more of it.
    CaughtUp,
    Gone,
    Unreadable,
}

impl History {
    pub(super) fn new(feed: &Arc<Feed>, view: &Arc<View>, after: u64, turn: OwnedSemaphorePermit) -> Self {
        let clock = |state: &State| state.clock().map_or(Anchor::default(), |clock| clock.anchor);
        let (tag, anchor) = view.read(|state| (state.tag(), clock(state)));
        let known = Known {
            leases: BTreeMap::new(),
            waits: BTreeMap::new(),
            sessions: BTreeMap::new(),
            pending: BTreeMap::new(),
            view: view.clone(),
        };
        Self { subscription: feed.subscribe(Seq(after)), after, known, tag, anchor, _turn: turn }
    }

    /// Reads on. It waits for the disk.
    pub(super) fn next(&mut self) -> Past {
        match self.subscription.next(Duration::ZERO) {
            Next::Batch(batch) => self.events_of(&batch).map_or(Past::Unreadable, Past::Events),
            Next::Nothing | Next::Ended => Past::CaughtUp,
            Next::Compacted { .. } => Past::Gone,
            _ => Past::Unreadable,
        }
    }

    /// `None`: an event that this version does not know.
    fn events_of(&mut self, batch: &Batch) -> Option<Vec<Arc<Happened>>> {
        let mut events = Vec::new();
        for (seq, record) in (batch.first.0..).zip(&batch.records) {
            // Entries about keys are no events of leases.
            let Some(event) = decode(record, self.tag).ok()? else { continue };
            let happened = Happened::new(seq, &event, &self.known, self.tag, self.anchor);
            self.anchor = happened.anchor();
            self.known.learn(&event, &happened.about);
            if seq > self.after {
                events.push(Arc::new(happened));
            }
        }
        Some(events)
    }
}

impl Known {
    fn learn(&mut self, event: &Event, about: &About) {
        match (event, about) {
            (_, About::Lease(facts)) if facts.end.is_some() => {
                self.leases.remove(&facts.fence);
            }
            (_, About::Lease(facts))
                if self.leases.len() < MOST_KNOWN || self.leases.contains_key(&facts.fence) =>
            {
                self.leases.insert(facts.fence, facts.clone());
            }
            (Event::Queued(queued), About::Wait(wait)) if self.waits.len() < MOST_KNOWN => {
                self.waits.extend(wait.queued.clone().map(|asked| (queued.ticket, asked)));
            }
            (_, About::Session(Some(then))) if then.session.state == SessionState::Ended => {
                self.sessions.remove(&then.session.id);
            }
            (_, About::Session(Some(then))) if self.sessions.len() < MOST_KNOWN_SESSIONS => {
                self.sessions.insert(then.session.id.clone(), then.session.clone());
            }
            (Event::Left { ticket, .. }, _) => {
                self.waits.remove(ticket);
            }
            _ => {}
        }
        if let Event::Agent(event) = event {
            match &**event {
                AgentEvent::Waits(pending) if self.pending.len() < MOST_KNOWN_SESSIONS => {
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
            self.waits.remove(&ticket);
            self.pending.remove(&ticket);
        }
    }
}

impl Before for Known {
    fn lease(&self, fence: Fence) -> Option<Facts> {
        let later = |state: &State| {
            let live = state.lease(fence).map(Facts::of_live);
            let facts = live.or_else(|| state.ended(fence).map(Facts::of_ended))?;
            Some(Facts { is_later: true, ..facts })
        };
        self.leases.get(&fence).cloned().or_else(|| self.view.read(later))
    }

    fn waiter(&self, ticket: Ticket) -> Option<Arc<Asked>> {
        self.waits.get(&ticket).cloned()
    }

    fn queue_length(&self, _: &Resource) -> Option<usize> {
        None
    }

    fn session(&self, id: &Holder) -> Option<Session> {
        let later = || self.view.read(|state| state.session(id).cloned());
        self.sessions.get(id).cloned().or_else(later)
    }

    fn sessions_revision(&self) -> u64 {
        0
    }

    /// As it is now: what changes of an agent is in the event itself.
    fn agent(&self, id: &Holder) -> Option<Agent> {
        self.view.read(|state| state.agent(id).cloned())
    }

    fn pending(&self, ticket: Ticket) -> Option<Pending> {
        self.pending.get(&ticket).cloned()
    }

    /// As it is now: who it is does not change.
    fn file_session(&self, id: &Holder) -> Option<FileSession> {
        self.view.read(|state| state.file_session(id).cloned())
    }

    /// As it is now: what it is for does not change.
    fn file_ticket(&self, ticket: Ticket) -> Option<FileTicket> {
        self.view.read(|state| state.file_ticket(ticket).cloned())
    }
}
