//! Agents as bytes and back.

use super::RestoreError;
use super::bytes::{Put, Take};
use super::part::{Saved, saved, saved_as};
use super::restore::Restoring;
use crate::kernel::agent::{Pending, Phase, Rank};
use crate::kernel::name::Holder;
use crate::kernel::state::{Agent, State};
use crate::kernel::value::{Fence, Tick, Ticket};
use crate::kernel::want::Want;
use crate::rules::overlap::has_parts;

saved! {
    Agent {
        priority, principal, session, phase, deaths, retry_at, graced, changed_at, epoch, restarting_at, strayed,
        holding_since, held_before, used_up,
    }
    "a session is none" unless |agent, _| !agent.session.is_empty();
    "leases are not in their order" unless |agent, _| agent.graced.is_sorted_by(|one, other| one < other);
}

saved_as! {
    // One more than the phase, or 0.
    Option<Phase>: |put, phase| put.byte(phase.map_or(0, |phase| phase as u8 + 1)), |take| phase(take);
}

fn phase(take: &mut Take<'_>) -> Result<Option<Phase>, RestoreError> {
    let place = usize::from(take.byte()?).checked_sub(1);
    let phase = place.map(|place| Phase::ALL.get(place).copied());
    take.ensure(phase != Some(None), "an agent does something unknown")?;
    Ok(phase.flatten())
}

impl Put<'_> {
    /// All agents by their names, then those who wait, the oldest first.
    pub(super) fn agents(&mut self, state: &State) {
        self.list(state.agents(), |put, (id, agent)| {
            id.put(put);
            agent.put(put);
        });
        self.list(state.pending(), |put, pending| {
            pending.ticket.put(put);
            pending.rank.agent.put(put);
            pending.at.put(put);
            put.number(pending.until.since(pending.at).0);
            pending.wants.put(put);
        });
        self.list(state.touches(), |put, touch| touch.put(put));
    }
}

impl Restoring<'_> {
    pub(super) fn agents(&mut self) -> Result<(), RestoreError> {
        let agents =
            self.take.ascending(|(id, _): &(Holder, Agent)| id.clone(), "agents are not in their order")?;
        for (id, agent) in agents {
            self.state.agents.enter(id, agent);
        }
        let mut last: Option<(Rank, Ticket)> = None;
        for _ in 0..self.take.count(8)? {
            let (ticket, agent) = <(Ticket, Holder)>::read(&mut self.take)?;
            self.take.ensure(ticket <= self.state.last_ticket, "a ticket was never drawn")?;
            let rank = self.state.rank_of(&agent);
            let rank = rank.ok_or_else(|| self.take.damaged("somebody waits who is nobody"))?;
            let at = self.take.past()?;
            let until = Tick(self.take.after(at.0)?);
            let wants = Vec::<Want>::read(&mut self.take)?;
            let fits = wants.iter().all(|want| has_parts(want.resource.as_str()));
            self.take.ensure(fits, "an agent waits for what it does not wait for")?;
            self.take.ensure(!wants.is_empty(), "an agent waits for nothing")?;
            let place = Some((rank.clone(), ticket));
            self.take.ensure(last < place, "those who wait are not in their order")?;
            last = place;
            self.state.agents.waits.insert(Pending { ticket, rank, wants, at, until });
        }
        let fits = self.state.invariant_waits_lead_from_old_to_young().is_ok();
        self.take.ensure(fits, "somebody waits for an older one")?;
        let touches =
            self.take.ascending(|(fence, _): &(Fence, Tick)| *fence, "leases are not in their order")?;
        for (fence, at) in touches {
            self.state.agents.touch(fence, at);
        }
        let fits = self.state.invariant_agents_hold_what_is_noted().is_ok();
        self.take.ensure(fits, "an agent holds what it does not")
    }
}
