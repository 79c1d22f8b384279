//! Wait-die: decides whether an agent is granted its manifest, waits for it, or must abort.

use std::collections::BTreeSet;

use super::decision::{
    end_wait, is_waiting, queue_blockers_of, wait_entries_conflicting, wait_entries_overlapping,
};
use super::declare::{grant, has_fences_and_time_for};
use crate::kernel::agent::{AgentEvent, AgentRank, AgentWait, AgentWaitEnd};
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::lease::decision_builder::DecisionBuilder;
use crate::kernel::lease::lease_request::{LeaseRequest, drop_covered_requests};
use crate::kernel::state::LeaseEntry;
use crate::rules::overlap::uncovered_indices;
use crate::value::{Fence, Holder, LeaseMode, Resource, Tick, TickDuration, Ticket};

/// What is to become of somebody who wants something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WaitDieVerdict {
    Grant,
    /// Only younger ones are.
    Wait(Vec<Holder>),
    /// An older one is, or somebody without an age.
    Die(Vec<Holder>),
}

/// What becomes of an agent that wants all of this.
pub(super) fn judge(
    decision: &DecisionBuilder<'_>,
    requests: &[LeaseRequest],
    rank: &AgentRank,
) -> WaitDieVerdict {
    let mut ahead: Vec<(Holder, bool)> = Vec::new();
    for request in drop_covered_requests(requests) {
        let (resource, mode) = (&request.resource, request.mode);
        let holders = conflicting_holders(decision, resource, mode).filter(|holder| *holder != rank.agent);
        ahead.extend(holders.map(|holder| {
            // Who stands in line may wait for this one, whatever its age.
            let is_younger =
                rank_of(decision, &holder).is_some_and(|other| other > *rank) && !decision.is_queued(&holder);
            (holder, is_younger)
        }));
        let around = wait_entries_conflicting(decision, resource, mode);
        let older = around.filter(|pending| pending.rank < *rank && pending.rank.agent != rank.agent);
        ahead.extend(older.map(|pending| (pending.rank.agent.clone(), false)));
    }
    ahead
        .extend(queue_blockers_of(decision, &rank.agent, requests).into_iter().map(|holder| (holder, false)));
    let dies = ahead.iter().any(|(_, is_younger)| !is_younger);
    let mut names: Vec<Holder> = ahead.into_iter().map(|(holder, _)| holder).collect();
    names.sort_unstable();
    names.dedup();
    match (names.is_empty(), dies) {
        (true, _) => WaitDieVerdict::Grant,
        (false, false) => WaitDieVerdict::Wait(names),
        (false, true) => WaitDieVerdict::Die(names),
    }
}

/// Whoever of those who wait would wait for an older one dies, and whoever has everything free gets it, the oldest first,
/// until neither is left. Only those are looked at around whom something changed.
pub(crate) fn reevaluate(decision: &mut DecisionBuilder<'_>) {
    while !decision.apis.agents.affected.is_empty() {
        let affected = std::mem::take(&mut decision.apis.agents.affected);
        let affected: Vec<Resource> = affected.into_iter().collect();
        let widest = uncovered_indices(affected.iter().map(|resource| (resource.as_str(), 0)));
        let around =
            widest.into_iter().flat_map(|place| wait_entries_overlapping(decision, &affected[place]));
        let waiting: BTreeSet<(AgentRank, Ticket)> =
            around.map(|pending| (pending.rank.clone(), pending.ticket)).collect();
        waiting.into_iter().for_each(|(_, ticket)| reevaluate_one(decision, ticket));
    }
}

/// The same, whatever changed.
pub(crate) fn reevaluate_all(decision: &mut DecisionBuilder<'_>) {
    let tickets: Vec<Ticket> = decision.state.waiting_agents().map(|pending| pending.ticket).collect();
    tickets.into_iter().for_each(|ticket| reevaluate_one(decision, ticket));
    reevaluate(decision);
}

fn reevaluate_one(decision: &mut DecisionBuilder<'_>, ticket: Ticket) {
    let new = decision.apis.agents.new_wait.as_ref().filter(|pending| pending.ticket == ticket);
    let pending = decision.state.agent_wait(ticket).or(new).filter(|pending| is_waiting(decision, pending));
    let Some(AgentWait { rank, requests, .. }) = pending.cloned() else { return };
    match judge(decision, &requests, &rank) {
        WaitDieVerdict::Wait(_) => {}
        WaitDieVerdict::Die(_) => {
            end_wait(decision, ticket, AgentWaitEnd::Died);
            abort(decision, &rank);
        }
        WaitDieVerdict::Grant if decision.is_full() => decision.has_more_waiters = true,
        WaitDieVerdict::Grant => {
            let known = decision.state.agent(&rank.agent).map(|agent| agent.principal.clone());
            let principal = known.or_else(|| decision.apis.agents.declaring_principal.clone());
            let may = decision.check_may_grant().is_ok() && has_fences_and_time_for(decision, &requests);
            if let Some(principal) = principal.filter(|_| may) {
                let leases = grant(decision, &rank.agent, &principal, &requests, Some(ticket));
                decision.apis.agents.served_wait_tickets.push((ticket, leases));
            }
        }
    }
}

/// Lets an agent die: it may come back later, and what an older one waits for is over.
pub(super) fn abort(decision: &mut DecisionBuilder<'_>, rank: &AgentRank) -> (Tick, Vec<Fence>) {
    let retry_at = decision.now.saturating_add(backoff_for(decision, &rank.agent));
    let before = decision.apis.agents.aborted.remove(&rank.agent);
    if before.is_none() {
        let (agent, at) = (rank.agent.clone(), decision.now);
        decision.push(Event::Agent(Box::new(AgentEvent::Died { agent, at, retry_at })));
    }
    let mut ended = before.map(|(_, ended)| ended).unwrap_or_default();
    for lease in decision.active_leases_of(&rank.agent) {
        if blocks_older_wait(decision, lease, rank) {
            let by = decision.state.principal_of(lease.holder).1.clone();
            decision.revoke(lease, RevocationCause::Died, &by, "an older agent waits for it");
            ended.push(lease.fence);
        }
    }
    decision.apis.agents.aborted.insert(rank.agent.clone(), (retry_at, ended.clone()));
    (retry_at, ended)
}

/// Whether there is anything to be ended if this one dies.
pub(super) fn blocks_older_agent(decision: &DecisionBuilder<'_>, rank: &AgentRank) -> bool {
    let leases = decision.active_leases_of(&rank.agent);
    leases.into_iter().any(|lease| blocks_older_wait(decision, lease, rank))
}

fn blocks_older_wait(decision: &DecisionBuilder<'_>, lease: &LeaseEntry, rank: &AgentRank) -> bool {
    let resource = decision.state.resource_name(lease.resource);
    wait_entries_conflicting(decision, resource, lease.terms.mode).any(|pending| pending.rank < *rank)
}

/// The age of an agent, as this decision leaves it.
fn rank_of(decision: &DecisionBuilder<'_>, agent: &Holder) -> Option<AgentRank> {
    let started = decision.apis.agents.new_attempt.iter().find(|rank| rank.agent == *agent).cloned();
    started.or_else(|| decision.state.rank_of(agent))
}

fn conflicting_holders(
    decision: &DecisionBuilder<'_>,
    resource: &Resource,
    mode: LeaseMode,
) -> impl Iterator<Item = Holder> {
    let leases = decision.state.leases_overlapping(resource);
    let leases = leases.filter(|lease| !lease.terms.mode.is_compatible(mode) && decision.is_active(lease));
    let leases = leases.map(|lease| decision.state.holder_name(lease.holder).clone());
    let granted =
        decision.issued_leases_overlapping(resource).filter(|issued| !issued.terms.mode.is_compatible(mode));
    let held: Vec<Holder> = leases.chain(granted.map(|issued| issued.holder.clone())).collect();
    held.into_iter()
}

/// Twice as long with every death, up to a bound, and a little longer by chance: by a chance that a replay finds again.
fn backoff_for(decision: &DecisionBuilder<'_>, agent: &Holder) -> TickDuration {
    let (base, max) = decision.state.limits().backoff;
    let aborts = decision.state.agent(agent).map_or(0, |agent| agent.abort_count);
    let delay = base.0.saturating_mul(1 << aborts.min(32)).min(max.0);
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(agent.as_str().as_bytes())
        .update(&aborts.to_be_bytes())
        .update(&decision.now.0.to_be_bytes());
    let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
    TickDuration(delay + u64::from(u32::from_be_bytes([a, b, c, d])) % (delay / 4 + 1))
}
