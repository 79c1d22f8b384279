//! How sessions end within a decision: with what they hold, and because of what they lost.

use super::draft::Draft;
use super::event::Event;
use super::intent::{IntentAnswer, IntentEvent, ORCHESTRATOR, Session, SessionEnd, SessionState};
use super::name::{Holder, Resource};
use super::state::{LeaseEntry, Slot};
use super::value::{Fence, Tick};
use crate::lease::ReleaseReason;

impl<'a> Draft<'a> {
    /// Ends a session and gives back what it holds.
    pub(crate) fn end_session(&mut self, session: &Session, end: SessionEnd, detail: &str) -> IntentAnswer {
        self.announce_end(session, end, detail);
        let reason = match end {
            SessionEnd::Completed => ReleaseReason::Completed,
            SessionEnd::Stopped | SessionEnd::WorkerStopped => ReleaseReason::Voluntary,
            _ => ReleaseReason::Aborted,
        };
        for lease in self.living_leases_of(&session.id) {
            let by = session.id.stored();
            self.push(Event::Released { lease: lease.fence, at: self.now, by, reason });
            self.mark_ended(lease);
        }
        IntentAnswer::Now { state: SessionState::Ended, end: Some(end) }
    }

    /// Says that a session is over. What it holds has to be ended by who says so.
    pub(crate) fn announce_end(&mut self, session: &Session, end: SessionEnd, detail: &str) {
        self.ended_sessions.insert(session.id.clone());
        self.push(Event::Intent(Box::new(IntentEvent::Ended {
            session: session.id.clone(),
            at: self.now,
            end,
            detail: detail.into(),
        })));
        // What it has lost without anybody saying so would else stay with one that is over.
        self.expire_all_of(&session.id);
    }

    /// Whether a session ended in this very decision.
    pub(crate) fn has_ended(&self, session: &Session) -> bool {
        self.ended_sessions.contains(&session.id)
    }

    /// Ends a session that has lost a lease, even if nobody has announced that. Says whether it is over.
    pub(crate) fn end_if_bereft(&mut self, session: &Session) -> bool {
        if self.has_ended(session) {
            return true;
        }
        let is_whole = self.living_leases_of(&session.id).len() == session.leases_needed();
        if is_whole {
            return false;
        }
        self.end_bereft(session);
        true
    }

    /// A session that is taken ends with the first lease that it loses.
    pub(crate) fn end_bereft_sessions(&mut self) {
        while let Some(holder) = self.bereft.pop_first() {
            let state = self.state;
            let Some(session) = state.session(state.holder_name(holder)) else { continue };
            if session.state.is_taken() && !self.has_ended(session) {
                self.end_bereft(session);
            }
        }
    }

    /// Notes whose lease ended, where that may be a session's.
    pub(crate) fn note_loss(&mut self, lease: &LeaseEntry) {
        if !self.state.has_sessions() || self.state.principal_of(lease.holder).1.as_str() != ORCHESTRATOR {
            return;
        }
        self.bereft.insert(lease.holder);
    }

    /// Ends at most `most` sessions that have waited too long for a worker. Says whether there are more.
    pub(crate) fn sweep_sessions(&mut self, most: usize) -> bool {
        let state = self.state;
        let mut overdue = state.overdue_sessions(self.now);
        for session in overdue.by_ref().take(most) {
            if !self.has_ended(session) {
                self.end_session(session, SessionEnd::NoWorker, "no worker took it in time");
            }
        }
        overdue.next().is_some()
    }

    /// What a holder has, here and now, oldest first.
    pub(crate) fn living_leases_of(&self, holder: &Holder) -> Vec<&'a LeaseEntry> {
        let state = self.state;
        let slot: Option<Slot> = state.find_holder(holder);
        let leases = slot.into_iter().flat_map(|slot| state.leases_of(slot));
        let mut living: Vec<_> = leases.filter(|lease| self.lives(lease)).collect();
        living.reverse();
        living
    }

    /// On what a lease is, and when it is over, with what this decision has given it.
    pub(crate) fn held_until(&self, fence: Fence) -> Option<(Tick, &Resource)> {
        let renewed = self.events().iter().rev().find_map(|event| match event {
            Event::Renewed { lease, expires_at, .. } if *lease == fence => Some(*expires_at),
            _ => None,
        });
        let issued = self.granted().find(|issued| issued.fence == fence);
        if let Some(issued) = issued {
            return Some((issued.expires_at, &issued.resource));
        }
        let lease = self.state.find_lease(fence)?;
        Some((renewed.unwrap_or(lease.expires_at), self.state.resource_name(lease.resource)))
    }

    fn expire_all_of(&mut self, holder: &Holder) {
        let Some(slot) = self.state.find_holder(holder) else { return };
        let leases: Vec<_> = self.state.leases_of(slot).collect();
        leases.into_iter().rev().for_each(|lease| self.expire_if_over(lease));
    }

    fn end_bereft(&mut self, session: &Session) {
        self.end_session(session, SessionEnd::LeaseLost, "a lease of it was lost");
    }
}
