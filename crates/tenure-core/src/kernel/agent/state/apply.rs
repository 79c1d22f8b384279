//! What happened to agents, applied.

use std::sync::Arc;

use super::AgentRecord;
use crate::kernel::agent::{AgentEvent, AgentPhase, AgentWait};
use crate::kernel::lease::lease_request::LeaseRequest;
use crate::kernel::state::apply::ensure;
use crate::kernel::state::{ApplyError, KernelState, Removed, Slot};
use crate::rules::overlap::is_hierarchical;
use crate::rules::{has_duration, is_expired};
use crate::value::{
    AGENT_RETENTION, Fence, Holder, LeaseMode, MAX_IDLE_AGENTS, Principal, Tick, TickDuration, Ticket,
};

impl KernelState {
    pub(in crate::kernel) fn apply_agent(
        &mut self,
        event: &AgentEvent,
    ) -> Result<Option<Removed>, ApplyError> {
        match event {
            AgentEvent::Began { rank, principal, session, at } => {
                let before = self.agents.get(&rank.agent);
                let last = before.and_then(|agent| Some((agent.priority?, agent.hold_time_used_up)));
                let younger = last
                    .is_none_or(|(last, used_up)| last < rank.priority || last == rank.priority && !used_up);
                ensure(younger, "an agent is older than in its last attempt")?;
                // Who has held plain leases only had no age before.
                let has_ended = last.is_none() || !self.has_active_attempt(&rank.agent);
                ensure(has_ended, "an attempt begins before the last one is over")?;
                self.upsert_agent(&rank.agent, principal, session, *at, |agent| {
                    if agent.priority != Some(rank.priority) {
                        (agent.earlier_hold_time, agent.hold_time_used_up) = (TickDuration(0), false);
                    }
                    agent.priority = Some(rank.priority);
                    (agent.abort_count, agent.retry_at) = (0, None);
                    agent.outside_resources.clear();
                });
            }
            AgentEvent::Waits(pending) => self.apply_agent_wait(pending)?,
            AgentEvent::Left { ticket, at, .. } => {
                let pending = self.agents.wait_index.remove(*ticket);
                let pending = pending.ok_or(ApplyError("it ends a wait that is not there"))?;
                self.agents.update(&pending.rank.agent, *at, |_| {});
                return Ok(Some(Removed::AgentWait(Box::new(pending))));
            }
            AgentEvent::Died { agent, at, retry_at } => {
                self.ensure_agent_exists(agent)?;
                self.agents.update(agent, *at, |agent| {
                    agent.abort_count = agent.abort_count.saturating_add(1);
                    agent.retry_at = Some(*retry_at);
                });
            }
            AgentEvent::Reported { agent, principal, session, at, phase, epoch } => {
                let held = self.find_holder(agent).into_iter().flat_map(|slot| self.leases_of(slot));
                let mut held: Vec<Fence> = held.map(|lease| lease.fence).collect();
                held.sort_unstable();
                self.upsert_agent(agent, principal, session, *at, |agent| {
                    (agent.phase, agent.epoch) = (Some(*phase), *epoch);
                    match phase {
                        AgentPhase::DieRestart => {
                            (agent.extended_leases, agent.restarting_at) = (held, Some(*at))
                        }
                        // Whoever has given up, or is done, begins anew.
                        AgentPhase::Completed | AgentPhase::Aborted => {
                            (agent.abort_count, agent.retry_at) = (0, None)
                        }
                        _ => {}
                    }
                });
            }
            AgentEvent::Touched { agent, at, leases } => {
                self.ensure_agent_exists(agent)?;
                for lease in leases {
                    ensure(self.touched_at(*lease).is_some(), "it touches what nobody has to change")?;
                    self.agents.touch(*lease, *at);
                }
                self.agents.update(agent, *at, |_| {});
            }
            AgentEvent::Strayed { agent, at, outside } => {
                self.ensure_agent_exists(agent)?;
                self.agents.update(agent, *at, |agent| {
                    for (resource, _) in outside {
                        if !agent.outside_resources.contains(resource) {
                            agent.outside_resources.push(resource.clone());
                        }
                    }
                });
            }
            AgentEvent::UsedUp { agent, at, .. } => {
                self.ensure_agent_exists(agent)?;
                self.agents.update(agent, *at, |agent| {
                    agent.hold_time_used_up = true;
                    (agent.abort_count, agent.retry_at) = (0, None);
                });
            }
        }
        Ok(None)
    }

    fn apply_agent_wait(&mut self, pending: &AgentWait) -> Result<(), ApplyError> {
        ensure(pending.ticket > self.last_ticket(), "its ticket was drawn before")?;
        ensure(has_duration(pending.at.0, pending.until.0), "it waits no time")?;
        ensure(!pending.requests.is_empty(), "it waits for nothing")?;
        let age = self.agents.get(&pending.rank.agent).and_then(|agent| agent.priority);
        ensure(age == Some(pending.rank.priority), "it waits with another age than it has")?;
        let plain = |request: &LeaseRequest| {
            is_hierarchical(request.resource.as_str()) && request.alternatives.is_empty()
        };
        ensure(pending.requests.iter().all(plain), "it waits for what agents do not wait for")?;
        self.last_ticket = pending.ticket;
        self.agents.update(&pending.rank.agent, pending.at, |_| {});
        self.agents.wait_index.insert(pending.clone());
        Ok(())
    }

    /// An agent got what it wanted: it is alive, and has died for nothing.
    pub(in crate::kernel) fn record_agent_grant(
        &mut self,
        agent: &Holder,
        (lease, mode): (Fence, LeaseMode),
        ticket: Option<Ticket>,
        at: Tick,
    ) {
        if let Some(ticket) = ticket {
            self.agents.wait_index.remove(ticket);
        }
        if self.agents.get(agent).is_some() && mode.is_mutating() {
            self.agents.touch(lease, at);
        }
        self.agents.update(agent, at, |agent| {
            (agent.abort_count, agent.retry_at) = (0, None);
            agent.holding_since.get_or_insert(at);
        });
    }

    pub(in crate::kernel) fn record_agent_loss(&mut self, lease: Fence, holder: Slot, at: Tick) {
        self.agents.forget_touch(lease);
        if self.leases_of(holder).next().is_some() {
            return;
        }
        let name = self.holder_name(holder).clone();
        let changed_at = self.agents.get(&name).map_or(at, |agent| agent.changed_at);
        self.agents.update(&name, changed_at, |agent| {
            if let Some(since) = agent.holding_since.take() {
                agent.earlier_hold_time =
                    TickDuration(agent.earlier_hold_time.0.saturating_add(at.since(since).0));
            }
        });
    }

    /// Drops agents of whom nothing was heard for a day, or who are too many, and who hold and wait for nothing.
    pub(in crate::kernel) fn forget_agents(&mut self) {
        // One event makes one agent known at the most. Those who are there are passed over, a few at a time.
        for _ in 0..8 {
            let Some((changed_at, id)) = self.agents.by_change.first().cloned() else { break };
            let is_kept = !is_expired(self.now().0, changed_at.saturating_add(AGENT_RETENTION).0);
            if is_kept && self.agents.by_id.len() <= MAX_IDLE_AGENTS {
                break;
            }
            let holds = self.find_holder(&id).is_some_and(|slot| self.leases_of(slot).next().is_some());
            if holds || self.agents.wait_entries_of(&id).next().is_some() {
                // Nothing happened to it, but it is there: look again a day later.
                let now = self.now();
                self.agents.update(&id, now, |_| {});
                continue;
            }
            self.agents.remove(&id);
        }
    }

    fn upsert_agent(
        &mut self,
        id: &Holder,
        principal: &Principal,
        session: &Arc<str>,
        at: Tick,
        change: impl FnOnce(&mut AgentRecord),
    ) {
        if self.agents.get(id).is_none() {
            let mut agent = AgentRecord::new(principal.clone(), session.clone(), at);
            // It may hold plain leases under this name already.
            let holds = self.find_holder(id).is_some_and(|slot| self.leases_of(slot).next().is_some());
            agent.holding_since = holds.then_some(at);
            self.agents.insert(id.clone(), agent);
        }
        self.agents.update(id, at, |agent| {
            (agent.principal, agent.session) = (principal.clone(), session.clone());
            change(agent);
        });
    }

    fn ensure_agent_exists(&self, agent: &Holder) -> Result<(), ApplyError> {
        ensure(self.agents.get(agent).is_some(), "nobody knows this agent")
    }
}
