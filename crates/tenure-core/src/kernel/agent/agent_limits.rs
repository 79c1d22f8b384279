//! What is taken from agents that keep what they do not use, or keep it for too long.

use super::decision::{end_wait_entries_of, time_out_wait_entries};
use crate::kernel::agent::{AgentEvent, AgentWaitEnd};
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::lease::decision_builder::DecisionBuilder;
use crate::value::{Holder, Principal, TickDuration};

/// In whose name that is done.
const AGENTS_PRINCIPAL: &str = "system:agents";

/// Ends what agents hold for longer than is permitted, at most so much. Says whether there is more.
pub(crate) fn enforce_limits(decision: &mut DecisionBuilder<'_>, max: usize) -> bool {
    let has_more_waiting = time_out_wait_entries(decision, max);
    let has_more_idle = end_idle_leases(decision, max);
    let has_more_used_up = end_used_up_agents(decision, max);
    has_more_waiting || has_more_idle || has_more_used_up
}

fn end_idle_leases(decision: &mut DecisionBuilder<'_>, max: usize) -> bool {
    let state = decision.state;
    let Some(idle) = state.limits().max_agent_idle_time else { return false };
    let mut leases = state.leases_untouched_for_at_least(idle, decision.now);
    let detail = format!("idle: what it is for was not touched for {}", seconds(idle));
    for lease in leases.by_ref().take(max) {
        if decision.is_active(lease) {
            decision.revoke(lease, RevocationCause::Revoked, &agents_principal(), &detail);
        } else {
            decision.expire_if_due(lease);
        }
    }
    leases.next().is_some()
}

fn end_used_up_agents(decision: &mut DecisionBuilder<'_>, max: usize) -> bool {
    let state = decision.state;
    let Some(longest) = state.limits().max_agent_hold_time else { return false };
    let mut agents = state.agents_holding_for_at_least(longest, decision.now);
    let detail = format!("quota: its agent has held leases for {} with one priority", seconds(longest));
    for id in agents.by_ref().take(max) {
        let used = hold_time_of(decision, id);
        decision.expire_leases_of(id);
        if used < longest {
            // All that it had was over in time, and only nobody had said so.
            continue;
        }
        for lease in decision.active_leases_of(id) {
            decision.revoke(lease, RevocationCause::Revoked, &agents_principal(), &detail);
        }
        end_wait_entries_of(decision, id, AgentWaitEnd::UsedUp);
        let event = AgentEvent::UsedUp { agent: id.clone(), at: decision.now, used };
        decision.push(Event::Agent(Box::new(event)));
    }
    agents.next().is_some()
}

/// For how long an agent has held leases with its age: until now, or until the last of them was over.
fn hold_time_of(decision: &DecisionBuilder<'_>, id: &Holder) -> TickDuration {
    let leases = decision.state.find_holder(id).into_iter().flat_map(|slot| decision.state.leases_of(slot));
    let last = leases.map(|lease| lease.terms.expires_at).max().unwrap_or(decision.now);
    decision.state.agent(id).map_or(TickDuration(0), |agent| agent.hold_time(last.min(decision.now)))
}

fn agents_principal() -> Principal {
    Principal::parse(AGENTS_PRINCIPAL).expect("it is a name")
}

fn seconds(span: TickDuration) -> String {
    format!("{} s", span.0 / TickDuration::from_secs(1).0)
}
