//! What is taken from agents that keep what they do not use, or keep it for too long.

use super::agent::{AgentEvent, PendingEnd};
use super::draft::Draft;
use super::event::{Cause, Event};
use super::name::{Holder, Principal};
use super::value::{Span, Ticket};

/// In whose name that is done.
const AGENTS: &str = "system:agents";

impl Draft<'_> {
    /// Ends what agents hold for longer than is permitted, at most so much. Says whether there is more.
    pub(crate) fn sweep_agents(&mut self, most: usize) -> bool {
        let has_more_waits = self.time_out_agents(most);
        let has_more_idle = self.end_idle_leases(most);
        let has_more_used_up = self.end_used_up_agents(most);
        has_more_waits || has_more_idle || has_more_used_up
    }

    pub(crate) fn withdraw_all_of(&mut self, agent: &Holder) {
        self.end_waits_of(agent, PendingEnd::Withdrawn);
    }

    fn end_idle_leases(&mut self, most: usize) -> bool {
        let state = self.state;
        let Some(idle) = state.limits().idle else { return false };
        let mut leases = state.leases_untouched_for(idle, self.now);
        let detail = format!("idle: what it is for was not touched for {}", seconds(idle));
        for lease in leases.by_ref().take(most) {
            if self.lives(lease) {
                self.revoke(lease, Cause::Revoked, &by(), &detail);
            } else {
                self.expire_if_over(lease);
            }
        }
        leases.next().is_some()
    }

    fn end_used_up_agents(&mut self, most: usize) -> bool {
        let state = self.state;
        let Some(longest) = state.limits().lease_time else { return false };
        let mut agents = state.agents_that_held_for(longest, self.now);
        let detail = format!("quota: its agent has held leases for {} with one priority", seconds(longest));
        for id in agents.by_ref().take(most) {
            let used = self.held_by(id);
            self.expire_all_of(id);
            if used < longest {
                // All that it had was over in time, and only nobody had said so.
                continue;
            }
            for lease in self.living_leases_of(id) {
                self.revoke(lease, Cause::Revoked, &by(), &detail);
            }
            self.end_waits_of(id, PendingEnd::UsedUp);
            let event = AgentEvent::UsedUp { agent: id.clone(), at: self.now, used };
            self.push(Event::Agent(Box::new(event)));
        }
        agents.next().is_some()
    }

    /// For how long an agent has held leases with its age: until now, or until the last of them was over.
    fn held_by(&self, id: &Holder) -> Span {
        let leases = self.state.find_holder(id).into_iter().flat_map(|slot| self.state.leases_of(slot));
        let last = leases.map(|lease| lease.terms.expires_at).max().unwrap_or(self.now);
        self.state.agent(id).map_or(Span(0), |agent| agent.held(last.min(self.now)))
    }

    fn end_waits_of(&mut self, agent: &Holder, end: PendingEnd) {
        let tickets: Vec<Ticket> = self.pending_of(agent).map(|pending| pending.ticket).collect();
        tickets.into_iter().for_each(|ticket| self.push_left(ticket, end));
    }
}

fn by() -> Principal {
    Principal::parse(AGENTS).expect("it is a name")
}

fn seconds(span: Span) -> String {
    format!("{} s", span.0 / Span::from_secs(1).0)
}
