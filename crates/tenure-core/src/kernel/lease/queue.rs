//! The FIFO queue: grants leases to waiters whose resources become free in a decision.

use super::decision_builder::{DecisionBuilder, Grant, QueuePosition};
use super::lease_request::LeaseRequest;
use crate::kernel::api_decisions;
use crate::kernel::state::{QueueEntry, Slot};
use crate::value::{ModeSet, Ticket};

impl DecisionBuilder<'_> {
    /// Lets in, oldest first, everybody whose whole request fits now.
    pub(crate) fn serve_waiters(&mut self) {
        if self.check_may_grant().is_err() {
            // They are let in once something may be granted again: see [`crate::kernel::command::Command::ServeWaiters`].
            self.affected_queues.clear();
        }
        while !self.affected_queues.is_empty() {
            let affected = std::mem::take(&mut self.affected_queues);
            let mut candidates: Vec<Ticket> =
                affected.into_iter().flat_map(|resource| self.candidates_on(resource)).collect();
            candidates.sort_unstable();
            candidates.dedup();
            for ticket in candidates {
                if self.is_full() {
                    self.has_more_waiters = true;
                    self.affected_queues.clear();
                    return;
                }
                if let Some(waiting) = self.state.queue_entry(ticket) {
                    self.serve_if_grantable(waiting);
                }
            }
        }
    }

    /// Lets in at most `max` waiters, whatever became free. Says whether there may be more.
    pub(crate) fn serve_oldest_waiters(&mut self, max: usize) -> bool {
        let state = self.state;
        api_decisions::serve_all_before_queue(self);
        let before = self.ended_waiters.len();
        let mut entries = state.queue_entries();
        for waiting in entries.by_ref() {
            self.serve_if_grantable(waiting);
            if self.ended_waiters.len() - before >= max || self.is_full() {
                break;
            }
        }
        entries.next().is_some()
    }

    fn serve_if_grantable(&mut self, waiting: &QueueEntry) {
        let queued = &waiting.queued;
        let place = QueuePosition { before: Some(queued.ticket) };
        let has_time = |request: &LeaseRequest| self.now.checked_add(request.ttl).is_some();
        let enough_fences = self.remaining_fences() >= queued.requests.len() as u64;
        if !self.is_waiting(waiting) || !enough_fences || !queued.requests.iter().all(has_time) {
            return;
        }
        let Ok(assignment) = self.assign_resources(&queued.requests, place, |_, _| false) else { return };
        self.mark_wait_ended(waiting);
        for (request, resource) in assignment.pairs(&queued.requests) {
            let (holder, principal) = (&queued.holder, &queued.principal);
            let (key, ticket) = (queued.key, Some(queued.ticket));
            let grant = Grant { resource, key, ticket, ..Grant::new(holder, principal, request) };
            self.issue_lease(grant).expect("time and fences were checked for the whole request");
        }
    }

    /// Who in the queue could be let in if only this resource mattered. A long queue of exclusive waiters
    /// costs no more than its first.
    fn candidates_on(&self, resource: Slot) -> Vec<Ticket> {
        let name = self.state.resource_name(resource);
        let held = self
            .state
            .leases_on(resource)
            .filter(|lease| self.is_active(lease))
            .map(|lease| lease.terms.mode);
        let held = held.chain(self.issued_leases_on(name).map(|issued| issued.terms.mode));
        let mut kept_out = held.map(ModeSet::conflicting_with).fold(ModeSet::default(), ModeSet::union);
        let mut candidates = Vec::new();
        for waiting in self.state.queue_on(resource) {
            if kept_out.is_all() {
                break;
            }
            if !self.is_waiting(waiting) {
                continue;
            }
            let modes = waiting.modes_on(resource);
            if !modes.is_subset(kept_out) {
                candidates.push(waiting.queued.ticket);
            }
            kept_out = kept_out.union(modes.conflicting_modes());
        }
        candidates
    }
}
