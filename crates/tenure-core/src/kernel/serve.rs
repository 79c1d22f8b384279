//! Whose turn has come: what a decision does for those who wait once something has ended.

use super::draft::{Draft, Grant, Place};
use super::mode::Modes;
use super::state::{Slot, Waiting};
use super::value::Ticket;
use super::want::Want;

impl Draft<'_> {
    /// Lets in, oldest first, everybody whose whole request fits now.
    pub(crate) fn serve_waiters(&mut self) {
        if self.check_may_grant().is_err() {
            // They are let in once something may be granted again: see [`super::command::Command::Serve`].
            self.freed.clear();
        }
        while !self.freed.is_empty() {
            let freed = std::mem::take(&mut self.freed);
            let mut candidates: Vec<Ticket> =
                freed.into_iter().flat_map(|resource| self.candidates_on(resource)).collect();
            candidates.sort_unstable();
            candidates.dedup();
            for ticket in candidates {
                if self.is_full() {
                    self.has_unserved = true;
                    self.freed.clear();
                    return;
                }
                if let Some(waiting) = self.state.waiting(ticket) {
                    self.serve_if_it_fits(waiting);
                }
            }
        }
    }

    /// Lets in at most `most` waiters, whatever became free. Says whether there may be more.
    pub(crate) fn serve_oldest(&mut self, most: usize) -> bool {
        let state = self.state;
        self.settle_all_agents();
        let before = self.served();
        let mut waits = state.waits();
        for waiting in waits.by_ref() {
            self.serve_if_it_fits(waiting);
            if self.served() - before >= most || self.is_full() {
                break;
            }
        }
        waits.next().is_some()
    }

    fn serve_if_it_fits(&mut self, waiting: &Waiting) {
        let queued = &waiting.queued;
        let place = Place { before: Some(queued.ticket) };
        let has_time = |want: &Want| self.now.checked_add(want.ttl).is_some();
        let enough_fences = self.fences_left() >= queued.wants.len() as u64;
        if !self.waits(waiting) || !enough_fences || !queued.wants.iter().all(has_time) {
            return;
        }
        let Ok(choice) = self.choose(&queued.wants, place, |_, _| false) else { return };
        self.mark_gone(waiting);
        for (want, resource) in choice.of(&queued.wants) {
            let (holder, principal) = (&queued.holder, &queued.principal);
            let (key, ticket) = (queued.key, Some(queued.ticket));
            let (continues, authority) = (None, None);
            let grant = Grant { holder, principal, want, resource, key, ticket, continues, authority };
            self.issue(grant).expect("time and fences were checked for the whole request");
        }
    }

    /// Who in the queue could be let in if only this resource mattered. A long queue of exclusive waiters
    /// costs no more than its first.
    fn candidates_on(&self, resource: Slot) -> Vec<Ticket> {
        let name = self.state.resource_name(resource);
        let held =
            self.state.leases_on(resource).filter(|lease| self.lives(lease)).map(|lease| lease.terms.mode);
        let held = held.chain(self.granted_on(name).map(|issued| issued.mode));
        let mut kept_out = held.map(Modes::kept_out_by).fold(Modes::default(), Modes::union);
        let mut candidates = Vec::new();
        for waiting in self.state.queue_on(resource) {
            if kept_out.is_all() {
                break;
            }
            if !self.waits(waiting) {
                continue;
            }
            let modes = waiting.modes_on(resource);
            if !modes.is_within(kept_out) {
                candidates.push(waiting.queued.ticket);
            }
            kept_out = kept_out.union(modes.kept_out());
        }
        candidates
    }
}
