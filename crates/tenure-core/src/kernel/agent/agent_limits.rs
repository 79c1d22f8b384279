//! What is taken from agents that keep what they do not use, or keep it for too long.

use crate::kernel::agent::{AgentEvent, AgentWaitEnd};
use crate::kernel::decision_builder::DecisionBuilder;
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::name::{Holder, Principal};
use crate::kernel::newtypes::{TickDuration, Ticket};

/// In whose name that is done.
const AGENTS_PRINCIPAL: &str = "system:agents";

impl DecisionBuilder<'_> {
    /// Ends what agents hold for longer than is permitted, at most so much. Says whether there is more.
    pub(crate) fn enforce_agent_limits(&mut self, max: usize) -> bool {
        let has_more_waiting = self.time_out_waiting_agents(max);
        let has_more_idle = self.end_idle_leases(max);
        let has_more_used_up = self.end_used_up_agents(max);
        has_more_waiting || has_more_idle || has_more_used_up
    }

    pub(crate) fn withdraw_waiting_agent(&mut self, agent: &Holder) {
        self.end_wait_entries_of(agent, AgentWaitEnd::Withdrawn);
    }

    fn end_idle_leases(&mut self, max: usize) -> bool {
        let state = self.state;
        let Some(idle) = state.limits().max_agent_idle_time else { return false };
        let mut leases = state.leases_untouched_for_at_least(idle, self.now);
        let detail = format!("idle: what it is for was not touched for {}", seconds(idle));
        for lease in leases.by_ref().take(max) {
            if self.is_active(lease) {
                self.revoke(lease, RevocationCause::Revoked, &agents_principal(), &detail);
            } else {
                self.expire_if_due(lease);
            }
        }
        leases.next().is_some()
    }

    fn end_used_up_agents(&mut self, max: usize) -> bool {
        let state = self.state;
        let Some(longest) = state.limits().max_agent_hold_time else { return false };
        let mut agents = state.agents_holding_for_at_least(longest, self.now);
        let detail = format!("quota: its agent has held leases for {} with one priority", seconds(longest));
        for id in agents.by_ref().take(max) {
            let used = self.hold_time_of(id);
            self.expire_leases_of(id);
            if used < longest {
                // All that it had was over in time, and only nobody had said so.
                continue;
            }
            for lease in self.active_leases_of(id) {
                self.revoke(lease, RevocationCause::Revoked, &agents_principal(), &detail);
            }
            self.end_wait_entries_of(id, AgentWaitEnd::UsedUp);
            let event = AgentEvent::UsedUp { agent: id.clone(), at: self.now, used };
            self.push(Event::Agent(Box::new(event)));
        }
        agents.next().is_some()
    }

    /// For how long an agent has held leases with its age: until now, or until the last of them was over.
    fn hold_time_of(&self, id: &Holder) -> TickDuration {
        let leases = self.state.find_holder(id).into_iter().flat_map(|slot| self.state.leases_of(slot));
        let last = leases.map(|lease| lease.terms.expires_at).max().unwrap_or(self.now);
        self.state.agent(id).map_or(TickDuration(0), |agent| agent.hold_time(last.min(self.now)))
    }

    fn end_wait_entries_of(&mut self, agent: &Holder, end: AgentWaitEnd) {
        let tickets: Vec<Ticket> = self.wait_entries_of(agent).map(|pending| pending.ticket).collect();
        tickets.into_iter().for_each(|ticket| self.end_agent_wait(ticket, end));
    }
}

fn agents_principal() -> Principal {
    Principal::parse(AGENTS_PRINCIPAL).expect("it is a name")
}

fn seconds(span: TickDuration) -> String {
    format!("{} s", span.0 / TickDuration::from_secs(1).0)
}
