//! What agents add to a decision: their waits and attempts as the decision leaves them.

use std::collections::{BTreeMap, BTreeSet};

use super::state::conflicts_with;
use crate::kernel::agent::{AgentEvent, AgentRank, AgentWait, AgentWaitEnd};
use crate::kernel::event::Event;
use crate::kernel::lease::decision_builder::{DecisionBuilder, QueuePosition};
use crate::kernel::lease::lease_request::{LeaseRequest, drop_covered_requests};
use crate::rules::is_expired;
use crate::rules::overlap::{is_hierarchical, overlaps};
use crate::value::{Fence, Holder, LeaseMode, Principal, Resource, Tick, Ticket};

#[derive(Default)]
pub(crate) struct AgentDecision {
    /// The wait that begins in this decision.
    pub(super) new_wait: Option<AgentWait>,
    /// The attempt that begins in this decision.
    pub(super) new_attempt: Option<AgentRank>,
    /// The principal of the agent that declares a manifest.
    pub(super) declaring_principal: Option<Principal>,
    /// Waits that end in this decision, served or not.
    pub(super) ended_wait_tickets: BTreeSet<Ticket>,
    /// Waits that are served in this decision, each with its leases.
    pub(super) served_wait_tickets: Vec<(Ticket, Vec<Fence>)>,
    /// Agents that abort in this decision: when each may retry, and the leases that it lost.
    pub(super) aborted: BTreeMap<Holder, (Tick, Vec<Fence>)>,
    /// Resources on which a lease or a wait began or ended since the waiting agents were last judged.
    pub(super) affected: BTreeSet<Resource>,
}

/// Records that a lease or a wait began or ended on a resource that agents may wait for.
pub(crate) fn record_change(decision: &mut DecisionBuilder<'_>, resource: &Resource) {
    let has_waiting_agents = decision.state.has_waiting_agents() || decision.apis.agents.new_wait.is_some();
    if has_waiting_agents && is_hierarchical(resource.as_str()) {
        decision.apis.agents.affected.insert(resource.clone());
    }
}

/// Waits for a resource that overlaps `resource`, the oldest agent first.
pub(super) fn wait_entries_overlapping<'b>(
    decision: &'b DecisionBuilder<'_>,
    resource: &'b Resource,
) -> impl Iterator<Item = &'b AgentWait> {
    let state = decision.state;
    let of_state =
        may_have_waiting_agents(decision, resource).then(|| state.waiting_agents_overlapping(resource));
    let new = decision.apis.agents.new_wait.iter().filter(|pending| {
        pending.requests.iter().any(|request| overlaps(request.resource.as_str(), resource.as_str()))
    });
    of_state.into_iter().flatten().chain(new).filter(move |pending| is_waiting(decision, pending))
}

/// Waits for a resource that overlaps `resource`, in a mode that conflicts with `mode`.
pub(crate) fn wait_entries_conflicting<'b>(
    decision: &'b DecisionBuilder<'_>,
    resource: &'b Resource,
    mode: LeaseMode,
) -> impl Iterator<Item = &'b AgentWait> {
    let state = decision.state;
    let of_state =
        may_have_waiting_agents(decision, resource).then(|| state.waiting_agents_conflicting(resource, mode));
    let new = decision
        .apis
        .agents
        .new_wait
        .iter()
        .filter(move |pending| conflicts_with(&pending.requests, resource, mode));
    of_state.into_iter().flatten().chain(new).filter(move |pending| is_waiting(decision, pending))
}

fn may_have_waiting_agents(decision: &DecisionBuilder<'_>, resource: &Resource) -> bool {
    decision.state.has_waiting_agents() && is_hierarchical(resource.as_str())
}

/// The waits of an agent as the decision leaves them.
pub(super) fn wait_entries_of<'b>(
    decision: &'b DecisionBuilder<'_>,
    agent: &'b Holder,
) -> impl Iterator<Item = &'b AgentWait> {
    let new = decision.apis.agents.new_wait.iter().filter(|pending| pending.rank.agent == *agent);
    decision.state.wait_entries_of(agent).chain(new).filter(move |pending| is_waiting(decision, pending))
}

pub(super) fn is_waiting(decision: &DecisionBuilder<'_>, pending: &AgentWait) -> bool {
    !is_expired(decision.now.0, pending.until.0)
        && !decision.apis.agents.ended_wait_tickets.contains(&pending.ticket)
}

/// How many leases the waiting agents of a principal request.
pub(crate) fn requested_lease_count(decision: &DecisionBuilder<'_>, principal: &Principal) -> usize {
    let state = decision.state;
    let is_own = |agent: &Holder| state.agent(agent).is_some_and(|agent| agent.principal == *principal);
    let own =
        state.waiting_agents().filter(|pending| is_waiting(decision, pending) && is_own(&pending.rank.agent));
    own.map(|pending| pending.requests.len()).sum()
}

/// Whether a holder must not enter the FIFO queue, because it waits as an agent or an agent waits for one of its leases.
pub(crate) fn is_barred_from_queue(decision: &DecisionBuilder<'_>, holder: &Holder) -> bool {
    let state = decision.state;
    if !state.has_waiting_agents() {
        return false;
    }
    wait_entries_of(decision, holder).next().is_some()
        || decision.active_leases_of(holder).into_iter().any(|lease| {
            let mut waiting =
                wait_entries_conflicting(decision, state.resource_name(lease.resource), lease.terms.mode);
            waiting.any(|pending| pending.rank.agent != *holder)
        })
}

/// The holders that block an agent which is in the FIFO queue itself, queued waiters among them. The agent may wait for
/// one of these waiters, so it must not overtake it by declaring a manifest.
pub(super) fn queue_blockers_of(
    decision: &DecisionBuilder<'_>,
    agent: &Holder,
    requests: &[LeaseRequest],
) -> Vec<Holder> {
    if !decision.is_queued(agent) {
        return Vec::new();
    }
    let ahead = requests
        .iter()
        .flat_map(|request| decision.blockers(&request.resource, request.mode, QueuePosition::default()));
    ahead.map(|blocker| blocker.holder.clone()).filter(|holder| holder != agent).collect()
}

/// Whether an agent's attempt continues after this decision.
pub(super) fn has_active_attempt(decision: &DecisionBuilder<'_>, agent: &Holder) -> bool {
    let is_waiting = || wait_entries_of(decision, agent).next().is_some();
    let died_before = || decision.state.agent(agent).is_some_and(|agent| agent.retry_at.is_some());
    let died = || decision.apis.agents.aborted.contains_key(agent) || died_before();
    let gets = || decision.issued_leases().any(|issued| issued.holder == *agent);
    !decision.active_leases_of(agent).is_empty() || gets() || is_waiting() || died()
}

pub(super) fn end_wait(decision: &mut DecisionBuilder<'_>, ticket: Ticket, end: AgentWaitEnd) {
    decision.push(Event::Agent(Box::new(AgentEvent::Left { ticket, at: decision.now, end })));
    mark_wait_ended(decision, ticket);
}

/// Records that a wait ended, served or not, so that later waits are judged again.
pub(super) fn mark_wait_ended(decision: &mut DecisionBuilder<'_>, ticket: Ticket) {
    decision.apis.agents.ended_wait_tickets.insert(ticket);
    let state = decision.state;
    let requests = state.agent_wait(ticket).map(|pending| &pending.requests[..]).unwrap_or_default();
    for request in drop_covered_requests(requests) {
        decision.mark_affected(state.find_resource(&request.resource), &request.resource);
    }
}

pub(super) fn end_wait_entries_of(decision: &mut DecisionBuilder<'_>, agent: &Holder, end: AgentWaitEnd) {
    let tickets: Vec<Ticket> = wait_entries_of(decision, agent).map(|pending| pending.ticket).collect();
    tickets.into_iter().for_each(|ticket| end_wait(decision, ticket, end));
}

/// Announces at most `max` timed-out waits. Returns whether more are left.
pub(super) fn time_out_wait_entries(decision: &mut DecisionBuilder<'_>, max: usize) -> bool {
    let mut overdue = decision.state.overdue_waiting_agents(decision.now);
    for pending in overdue.by_ref().take(max) {
        if !decision.apis.agents.ended_wait_tickets.contains(&pending.ticket) {
            end_wait(decision, pending.ticket, AgentWaitEnd::TimedOut);
        }
    }
    overdue.next().is_some()
}

/// Announces timed-out waits, if one may block a request for `resource`.
pub(crate) fn time_out_wait_entries_near(decision: &mut DecisionBuilder<'_>, resource: &Resource) {
    if may_have_waiting_agents(decision, resource) {
        time_out_wait_entries(decision, usize::MAX);
    }
}
