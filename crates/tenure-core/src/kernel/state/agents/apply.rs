//! What happened to agents, applied.

use std::sync::Arc;

use super::Agent;
use crate::kernel::agent::{AgentEvent, Pending, Phase};
use crate::kernel::limits::{AGENT_KEPT, AGENTS_KEPT};
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::state::apply::ensure;
use crate::kernel::state::{Misfit, Slot, State};
use crate::kernel::value::{Fence, Span, Tick, Ticket};
use crate::kernel::want::Want;
use crate::rules::overlap::has_parts;
use crate::rules::time::{is_over, lasts};

impl State {
    pub(in crate::kernel::state) fn apply_agent(&mut self, event: &AgentEvent) -> Result<(), Misfit> {
        match event {
            AgentEvent::Began { rank, principal, session, at } => {
                let before = self.agents.get(&rank.agent);
                let last = before.and_then(|agent| Some((agent.priority?, agent.used_up)));
                let younger = last
                    .is_none_or(|(last, used_up)| last < rank.priority || last == rank.priority && !used_up);
                ensure(younger, "an agent is older than in its last attempt")?;
                // Who has held plain leases only had no age before.
                let is_over = last.is_none() || !self.is_engaged(&rank.agent);
                ensure(is_over, "an attempt begins before the last one is over")?;
                self.know(&rank.agent, principal, session, *at, |agent| {
                    if agent.priority != Some(rank.priority) {
                        (agent.held_before, agent.used_up) = (Span(0), false);
                    }
                    agent.priority = Some(rank.priority);
                    (agent.deaths, agent.retry_at) = (0, None);
                    agent.strayed.clear();
                });
            }
            AgentEvent::Waits(pending) => self.apply_waits(pending)?,
            AgentEvent::Left { ticket, at, .. } => {
                let pending = self.agents.waits.remove(*ticket);
                let pending = pending.ok_or(Misfit("it ends a wait that is not there"))?;
                self.agents.change(&pending.rank.agent, *at, |_| {});
            }
            AgentEvent::Died { agent, at, retry_at } => {
                self.ensure_known(agent)?;
                self.agents.change(agent, *at, |agent| {
                    agent.deaths = agent.deaths.saturating_add(1);
                    agent.retry_at = Some(*retry_at);
                });
            }
            AgentEvent::Reported { agent, principal, session, at, phase, epoch } => {
                let held = self.find_holder(agent).into_iter().flat_map(|slot| self.leases_of(slot));
                let mut held: Vec<Fence> = held.map(|lease| lease.fence).collect();
                held.sort_unstable();
                self.know(agent, principal, session, *at, |agent| {
                    (agent.phase, agent.epoch) = (Some(*phase), *epoch);
                    match phase {
                        Phase::DieRestart => (agent.graced, agent.restarting_at) = (held, Some(*at)),
                        // Whoever has given up, or is done, begins anew.
                        Phase::Completed | Phase::Aborted => (agent.deaths, agent.retry_at) = (0, None),
                        _ => {}
                    }
                });
            }
            AgentEvent::Touched { agent, at, leases } => {
                self.ensure_known(agent)?;
                for lease in leases {
                    ensure(self.touched_at(*lease).is_some(), "it touches what nobody has to change")?;
                    self.agents.touch(*lease, *at);
                }
                self.agents.change(agent, *at, |_| {});
            }
            AgentEvent::Strayed { agent, at, outside } => {
                self.ensure_known(agent)?;
                self.agents.change(agent, *at, |agent| {
                    for (resource, _) in outside {
                        if !agent.strayed.contains(resource) {
                            agent.strayed.push(resource.clone());
                        }
                    }
                });
            }
            AgentEvent::UsedUp { agent, at, .. } => {
                self.ensure_known(agent)?;
                self.agents.change(agent, *at, |agent| {
                    agent.used_up = true;
                    (agent.deaths, agent.retry_at) = (0, None);
                });
            }
        }
        Ok(())
    }

    fn apply_waits(&mut self, pending: &Pending) -> Result<(), Misfit> {
        ensure(pending.ticket > self.last_ticket(), "its ticket was drawn before")?;
        ensure(lasts(pending.at.0, pending.until.0), "it waits no time")?;
        ensure(!pending.wants.is_empty(), "it waits for nothing")?;
        let age = self.agents.get(&pending.rank.agent).and_then(|agent| agent.priority);
        ensure(age == Some(pending.rank.priority), "it waits with another age than it has")?;
        let plain = |want: &Want| has_parts(want.resource.as_str()) && want.others.is_empty();
        ensure(pending.wants.iter().all(plain), "it waits for what agents do not wait for")?;
        self.last_ticket = pending.ticket;
        self.agents.change(&pending.rank.agent, pending.at, |_| {});
        self.agents.waits.insert(pending.clone());
        Ok(())
    }

    /// An agent got what it wanted: it is alive, and has died for nothing.
    pub(in crate::kernel::state) fn agent_was_granted(
        &mut self,
        agent: &Holder,
        (lease, mode): (Fence, Mode),
        ticket: Option<Ticket>,
        at: Tick,
    ) {
        if let Some(ticket) = ticket {
            self.agents.waits.remove(ticket);
        }
        if self.agents.get(agent).is_some() && mode.changes() {
            self.agents.touch(lease, at);
        }
        self.agents.change(agent, at, |agent| {
            (agent.deaths, agent.retry_at) = (0, None);
            agent.holding_since.get_or_insert(at);
        });
    }

    pub(in crate::kernel::state) fn agent_has_lost(&mut self, lease: Fence, holder: Slot, at: Tick) {
        self.agents.forget_touch(lease);
        if self.leases_of(holder).next().is_some() {
            return;
        }
        let name = self.holder_name(holder).clone();
        let changed_at = self.agents.get(&name).map_or(at, |agent| agent.changed_at);
        self.agents.change(&name, changed_at, |agent| {
            if let Some(since) = agent.holding_since.take() {
                agent.held_before = Span(agent.held_before.0.saturating_add(at.since(since).0));
            }
        });
    }

    /// Drops agents of whom nothing was heard for a day, or who are too many, and who hold and wait for nothing.
    pub(in crate::kernel::state) fn forget_agents(&mut self) {
        // One event makes one agent known at the most. Those who are there are passed over, a few at a time.
        for _ in 0..8 {
            let Some((changed_at, id)) = self.agents.by_change.first().cloned() else { break };
            let is_kept = !is_over(self.now.0, changed_at.saturating_add(AGENT_KEPT).0);
            if is_kept && self.agents.by_id.len() <= AGENTS_KEPT {
                break;
            }
            let holds = self.find_holder(&id).is_some_and(|slot| self.leases_of(slot).next().is_some());
            if holds || self.agents.waits_of(&id).next().is_some() {
                // Nothing happened to it, but it is there: look again a day later.
                let now = self.now;
                self.agents.change(&id, now, |_| {});
                continue;
            }
            self.agents.remove(&id);
        }
    }

    fn know(
        &mut self,
        id: &Holder,
        principal: &Principal,
        session: &Arc<str>,
        at: Tick,
        change: impl FnOnce(&mut Agent),
    ) {
        if self.agents.get(id).is_none() {
            let mut agent = Agent::new(principal.clone(), session.clone(), at);
            // It may hold plain leases under this name already.
            let holds = self.find_holder(id).is_some_and(|slot| self.leases_of(slot).next().is_some());
            agent.holding_since = holds.then_some(at);
            self.agents.enter(id.clone(), agent);
        }
        self.agents.change(id, at, |agent| {
            (agent.principal, agent.session) = (principal.clone(), session.clone());
            change(agent);
        });
    }

    fn ensure_known(&self, agent: &Holder) -> Result<(), Misfit> {
        ensure(self.agents.get(agent).is_some(), "nobody knows this agent")
    }
}
