//! Nobody waits in two ways: as an agent, and in line with those who have no age.
//!
//! Waits of agents lead from the old to the young, and never to somebody who stands in line; so no circle of waits goes through
//! both, and the search for circles in the line need not look at agents.

use super::draft::{Draft, Place};
use super::name::Holder;
use super::want::Want;

impl Draft<'_> {
    /// Whether somebody must not stand in line, because it waits as an agent, or an agent waits for what it has.
    pub(crate) fn must_not_line_up(&self, holder: &Holder) -> bool {
        let state = self.state;
        if !state.has_pending() {
            return false;
        }
        self.pending_of(holder).next().is_some()
            || self.living_leases_of(holder).into_iter().any(|lease| {
                let mut waiting = self.pending_apart(state.resource_name(lease.resource), lease.mode);
                waiting.any(|pending| pending.rank.agent != *holder)
            })
    }

    pub(crate) fn waits_in_line(&self, holder: &Holder) -> bool {
        let slot = self.state.find_holder(holder);
        slot.into_iter().flat_map(|slot| self.state.waits_of(slot)).any(|waiting| self.waits(waiting))
    }

    /// Who is in the way of an agent that stands in line itself: everybody, also those who stand there. It may wait for one of
    /// them, so it must not come in front of them by asking as an agent.
    pub(crate) fn ahead_in_line(&self, agent: &Holder, wants: &[Want]) -> Vec<Holder> {
        if !self.waits_in_line(agent) {
            return Vec::new();
        }
        let ahead = wants.iter().flat_map(|want| self.blockers(&want.resource, want.mode, Place::default()));
        ahead.map(|blocker| blocker.holder.clone()).filter(|holder| holder != agent).collect()
    }
}
