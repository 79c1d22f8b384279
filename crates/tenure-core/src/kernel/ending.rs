//! How sessions end within a decision: with what they hold, and because of what they lost.

use super::draft::Draft;
use super::event::Event;
use super::intent::{IntentAnswer, IntentEvent, ORCHESTRATOR, Session, SessionEnd, SessionState};
use super::name::{Holder, Resource};
use super::state::{LeaseEntry, Slot};
use super::value::{Fence, Tick};
use crate::lease::ReleaseReason;
use crate::rules::time::is_over;

/// What people read of a session that nobody took.
const NOBODY_CAME: &str = "no worker took it in time";
/// What people read of a session that lost a lease.
const LOST: &str = "a lease of it was lost";

impl<'a> Draft<'a> {
    pub(crate) fn end_session(&mut self, session: &Session, end: SessionEnd, detail: &str) -> IntentAnswer {
        self.announce_end(session, end, detail);
        let reason = match end {
            SessionEnd::Completed => ReleaseReason::Completed,
            SessionEnd::Stopped | SessionEnd::WorkerStopped => ReleaseReason::Voluntary,
            _ => ReleaseReason::Aborted,
        };
        for lease in self.living_leases_of(&session.id) {
            self.release(lease, reason);
        }
        IntentAnswer::Now { state: SessionState::Ended, end: Some(end) }
    }

    /// Says that a session is over. What it holds has to be ended by who says so.
    pub(crate) fn announce_end(&mut self, session: &Session, end: SessionEnd, detail: &str) {
        self.ended_sessions.insert(session.id.clone(), end);
        self.push(Event::Intent(Box::new(IntentEvent::Ended {
            session: session.id.clone(),
            at: self.now,
            end,
            detail: detail.into(),
        })));
        // What it has lost without anybody saying so would else stay with one that is over.
        self.expire_all_of(&session.id);
    }

    /// Where a session is, if it is over. One that is over without anybody having said so ends here: no worker took it in
    /// time, or it has lost a lease.
    pub(crate) fn over(&mut self, session: &Session) -> Option<IntentAnswer> {
        let before = session.end.or_else(|| self.ended_sessions.get(&session.id).copied());
        if let Some(end) = before {
            return Some(IntentAnswer::Now { state: SessionState::Ended, end: Some(end) });
        }
        if session.state == SessionState::New {
            let too_late = is_over(self.now.0, session.start_by.0);
            return too_late.then(|| self.end_session(session, SessionEnd::NoWorker, NOBODY_CAME));
        }
        let is_whole = self.living_leases_of(&session.id).len() == session.leases_needed();
        (!is_whole).then(|| self.end_session(session, SessionEnd::LeaseLost, LOST))
    }

    /// How many sessions go on, and about how large they are, without those that end in this decision.
    pub(crate) fn live_sessions(&self) -> (usize, usize) {
        let (live, bytes) = self.state.live_sessions();
        let ended = self.ended_sessions.keys().filter_map(|id| self.state.session(id));
        (live - self.ended_sessions.len(), bytes - ended.map(Session::bytes).sum::<usize>())
    }

    /// A session that is taken ends with the first lease that it loses.
    pub(crate) fn end_bereft_sessions(&mut self) {
        while let Some(holder) = self.bereft.pop_first() {
            let state = self.state;
            if let Some(session) = state.session(&holder)
                && session.state.is_taken()
            {
                self.over(session);
            }
        }
    }

    /// Notes whose lease ended, where that may be a session's.
    pub(crate) fn note_loss(&mut self, lease: &LeaseEntry) {
        if self.state.has_sessions() && self.state.principal_of(lease.holder).1.as_str() == ORCHESTRATOR {
            self.bereft.insert(self.state.holder_name(lease.holder).clone());
        }
    }

    /// Ends at most `most` sessions that have waited too long for a worker. Says whether there are more.
    pub(crate) fn sweep_sessions(&mut self, most: usize) -> bool {
        let mut overdue = self.state.overdue_sessions(self.now);
        for session in overdue.by_ref().take(most) {
            self.over(session);
        }
        overdue.next().is_some()
    }

    /// What a holder has, here and now, oldest first.
    pub(crate) fn living_leases_of(&self, holder: &Holder) -> Vec<&'a LeaseEntry> {
        let state = self.state;
        let slot: Option<Slot> = state.find_holder(holder);
        let leases = slot.into_iter().flat_map(|slot| state.leases_of(slot));
        let mut living: Vec<_> = leases.filter(|lease| self.lives(lease)).collect();
        // Where they lie in memory must not show in the ledger.
        living.sort_unstable_by_key(|lease| lease.fence);
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
        Some((renewed.unwrap_or(lease.terms.expires_at), self.state.resource_name(lease.resource)))
    }

    pub(crate) fn expire_all_of(&mut self, holder: &Holder) {
        let Some(slot) = self.state.find_holder(holder) else { return };
        let mut leases: Vec<_> = self.state.leases_of(slot).collect();
        leases.sort_unstable_by_key(|lease| lease.fence);
        leases.into_iter().for_each(|lease| self.expire_if_over(lease));
    }
}
