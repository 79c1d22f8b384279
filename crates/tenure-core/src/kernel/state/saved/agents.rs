//! Agents as bytes and back.

use super::bytes::{Put, Take};
use super::restore::Restoring;
use super::{RestoreError, WITH_AGENTS};
use crate::kernel::agent::{Pending, Phase, Rank};
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::state::{Agent, State};
use crate::kernel::value::{Fence, Span, Tick, Ticket};
use crate::kernel::want::Others;
use crate::rules::names::check_name;
use crate::rules::overlap::has_parts;

impl Put<'_> {
    /// All agents by their names, then those who wait, the oldest first.
    pub(super) fn agents(&mut self, state: &State) {
        self.count(state.agents().count());
        for (id, agent) in state.agents() {
            self.text(id.as_str());
            self.agent(agent, state.now);
        }
        self.count(state.pending().count());
        for pending in state.pending() {
            self.number(pending.ticket.0);
            self.text(pending.rank.agent.as_str());
            self.past(pending.at, state.now);
            self.number(pending.until.since(pending.at).0);
            self.count(pending.wants.len());
            for want in &pending.wants {
                self.text(want.resource.as_str());
                self.want(want);
            }
        }
        self.count(state.touches().count());
        for (fence, at) in state.touches() {
            self.number(fence.0);
            self.past(at, state.now);
        }
    }

    fn agent(&mut self, agent: &Agent, now: Tick) {
        self.number(agent.priority.map_or(0, |priority| priority.saturating_add(1)));
        self.text(agent.principal.as_str());
        self.text(&agent.session);
        self.byte(agent.phase.map_or(0, code_of_phase));
        self.number(agent.deaths.into());
        self.number(agent.retry_at.map_or(0, |at| at.0.saturating_add(1)));
        self.count(agent.graced.len());
        agent.graced.iter().for_each(|fence| self.number(fence.0));
        self.past(agent.changed_at, now);
        self.number(agent.epoch);
        self.number(agent.restarting_at.map_or(0, |at| at.0.saturating_add(1)));
        self.count(agent.strayed.len());
        agent.strayed.iter().for_each(|resource| self.text(resource.as_str()));
        self.number(agent.holding_since.map_or(0, |at| at.0.saturating_add(1)));
        self.number(agent.held_before.0);
        self.byte(agent.used_up.into());
    }
}

impl Restoring<'_> {
    pub(super) fn agents(&mut self) -> Result<(), RestoreError> {
        let mut before: Option<Holder> = None;
        let count = self.take.count(8)?;
        // One state has one form: what an older one says is not said in the newest.
        self.take.ensure(count > 0 || self.version > WITH_AGENTS, "it needs no such form")?;
        for _ in 0..count {
            let id = self.take.name(Holder::parse)?;
            self.take.ensure(before.is_none_or(|before| before < id), "agents are not in their order")?;
            let agent = self.take.agent(self.state.now)?;
            before = Some(id.clone());
            self.state.agents.enter(id, agent);
        }
        let mut last: Option<(Rank, Ticket)> = None;
        for _ in 0..self.take.count(8)? {
            let ticket = Ticket(self.take.number()?);
            self.take.ensure(ticket <= self.state.last_ticket, "a ticket was never drawn")?;
            let agent = self.take.name(Holder::parse)?;
            let rank = self.state.rank_of(&agent);
            let rank = rank.ok_or_else(|| self.take.damaged("somebody waits who is nobody"))?;
            let at = self.take.past(self.state.now)?;
            let until = Tick(self.take.after(at.0)?);
            let mut wants = Vec::new();
            for _ in 0..self.take.count(8)? {
                let resource = self.take.name(Resource::parse)?;
                self.take
                    .ensure(has_parts(resource.as_str()), "an agent waits for what it does not wait for")?;
                wants.push(self.take.want(resource, Others::default())?);
            }
            self.take.ensure(!wants.is_empty(), "an agent waits for nothing")?;
            let place = Some((rank.clone(), ticket));
            self.take.ensure(last < place, "those who wait are not in their order")?;
            last = place;
            self.state.agents.waits.insert(Pending { ticket, rank, wants, at, until });
        }
        let fits = self.state.invariant_waits_lead_from_old_to_young().is_ok();
        self.take.ensure(fits, "somebody waits for an older one")?;
        self.touches()
    }

    fn touches(&mut self) -> Result<(), RestoreError> {
        let mut before: Option<Fence> = None;
        for _ in 0..self.take.count(2)? {
            let fence = Fence(self.take.number()?);
            self.take.ensure(before.is_none_or(|before| before < fence), "leases are not in their order")?;
            let at = self.take.past(self.state.now)?;
            self.state.agents.touch(fence, at);
            before = Some(fence);
        }
        let fits = self.state.invariant_agents_hold_what_is_noted().is_ok();
        self.take.ensure(fits, "an agent holds what it does not")
    }
}

impl Take<'_> {
    fn agent(&mut self, now: Tick) -> Result<Agent, RestoreError> {
        let priority = self.number()?.checked_sub(1);
        let principal = self.name(Principal::parse)?;
        let session = self.text()?;
        self.ensure(check_name("session_id", session).is_ok(), "a session is none")?;
        let code = self.byte()?;
        let phase = Phase::ALL.into_iter().find(|phase| code_of_phase(*phase) == code);
        self.ensure(phase.is_some() || code == 0, "an agent does something unknown")?;
        let deaths = u32::try_from(self.number()?).map_err(|_| self.damaged("an agent died too often"))?;
        let retry_at = self.number()?.checked_sub(1).map(Tick);
        let mut graced = Vec::new();
        for _ in 0..self.count(1)? {
            graced.push(Fence(self.number()?));
        }
        self.ensure(graced.is_sorted_by(|one, other| one < other), "leases are not in their order")?;
        let changed_at = self.past(now)?;
        let session = session.into();
        let epoch = self.number()?;
        let restarting_at = self.number()?.checked_sub(1).map(Tick);
        let mut strayed = Vec::new();
        for _ in 0..self.count(2)? {
            strayed.push(self.name(Resource::parse)?);
        }
        let holding_since = self.number()?.checked_sub(1).map(Tick);
        let held_before = Span(self.number()?);
        let used_up = match self.byte()? {
            0 => false,
            1 => true,
            _ => return Err(self.damaged("whether an agent used its time up is neither yes nor no")),
        };
        Ok(Agent {
            priority,
            principal,
            session,
            phase,
            epoch,
            deaths,
            retry_at,
            graced,
            restarting_at,
            strayed,
            holding_since,
            held_before,
            used_up,
            changed_at,
        })
    }
}

/// 0 is nothing.
fn code_of_phase(phase: Phase) -> u8 {
    match phase {
        Phase::Planning => 1,
        Phase::Acquiring => 2,
        Phase::Executing => 3,
        Phase::Paused => 4,
        Phase::Verifying => 5,
        Phase::Completed => 6,
        Phase::Aborted => 7,
        Phase::DieRestart => 8,
    }
}
