//! What an agent gets, and what it is told once everybody has got what is theirs.

use super::decision::{end_wait, mark_wait_ended};
use crate::kernel::agent::{AgentOutcome, AgentWaitEnd};
use crate::kernel::decision_builder::{DecisionBuilder, Grant};
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::lease_request::LeaseRequest;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::newtypes::{Fence, Ticket};
use crate::rules::time::extends;

/// Gives an agent all that it wants: what it has is renewed or made stronger, the rest is issued.
pub(super) fn grant(
    decision: &mut DecisionBuilder<'_>,
    agent: &Holder,
    principal: &Principal,
    requests: &[LeaseRequest],
    ticket: Option<Ticket>,
) -> Vec<Fence> {
    let before = decision.issued_leases().count();
    let leases =
        requests.iter().map(|request| grant_one(decision, agent, principal, request, ticket)).collect();
    if let Some(ticket) = ticket {
        // A wait ends with the first lease that is issued for it. Where none is, it has to be said.
        if decision.issued_leases().count() == before {
            end_wait(decision, ticket, AgentWaitEnd::Served);
        }
        mark_wait_ended(decision, ticket);
    }
    leases
}

fn grant_one(
    decision: &mut DecisionBuilder<'_>,
    agent: &Holder,
    principal: &Principal,
    request: &LeaseRequest,
    ticket: Option<Ticket>,
) -> Fence {
    let state = decision.state;
    // Mostly one. There are several if others gave it some, or if it has plain ones too.
    let on = state.find_resource(&request.resource).into_iter().flat_map(|slot| state.leases_on(slot));
    let mut own: Vec<_> =
        on.filter(|lease| decision.is_active(lease) && state.holder_name(lease.holder) == agent).collect();
    // Where they lie in memory must not show in the ledger.
    own.sort_unstable_by_key(|lease| lease.fence);
    if let Some(lease) = own.iter().find(|lease| lease.terms.mode.covers(request.mode)) {
        let expires_at = decision.now.saturating_add(request.ttl);
        // Another manifest of its own may have renewed it in this very decision.
        let until =
            decision.expiry_and_resource_of(lease.fence).map_or(lease.terms.expires_at, |(until, _)| until);
        if extends(until.0, expires_at.0) {
            decision.push(Event::Renewed {
                lease: lease.fence,
                at: decision.now,
                expires_at,
                ttl: request.ttl,
            });
        }
        return lease.fence;
    }
    let mut continues = own.first().map(|lease| lease.fence);
    for lease in own {
        decision.revoke(
            lease,
            RevocationCause::Transferred,
            principal,
            "its agent wants it in a stronger way",
        );
    }
    // It may have got it in this very decision, for another manifest of its own.
    let got = decision.issued_leases_on(&request.resource).filter(|issued| issued.holder == *agent).last();
    if let Some((fence, mode)) = got.map(|issued| (issued.fence, issued.terms.mode)) {
        if mode.covers(request.mode) {
            return fence;
        }
        let (by, detail) = (principal.clone(), "its agent wants it in a stronger way".into());
        decision.push(Event::Revoked {
            lease: fence,
            at: decision.now,
            cause: RevocationCause::Transferred,
            by,
            detail,
        });
        continues = Some(fence);
    }
    let grant = Grant { ticket, continues, ..Grant::new(agent, principal, request) };
    decision.issue_lease(grant).expect("time and fences were looked at before")
}

/// Whether there are numbers and time for all of this.
pub(super) fn has_fences_and_time_for(decision: &DecisionBuilder<'_>, requests: &[LeaseRequest]) -> bool {
    let has_time = |request: &LeaseRequest| decision.now.checked_add(request.ttl).is_some();
    decision.remaining_fences() >= requests.len() as u64 && requests.iter().all(has_time)
}

/// What an agent is told that was told to wait, once everything is settled.
pub(super) fn final_outcome(
    decision: &DecisionBuilder<'_>,
    agent: &Holder,
    answer: AgentOutcome,
) -> AgentOutcome {
    let (ticket, blocked_by) = match &answer {
        AgentOutcome::Wait { ticket, blocked_by, .. } => (ticket, blocked_by),
        AgentOutcome::Granted { leases } => return final_grant(decision, leases),
        _ => return answer,
    };
    if let Some((_, leases)) =
        decision.apis.agents.served_wait_tickets.iter().find(|(served, _)| served == ticket)
    {
        return final_grant(decision, leases);
    }
    match decision.apis.agents.aborted.get(agent) {
        Some((retry_at, ended)) if decision.apis.agents.ended_wait_tickets.contains(ticket) => {
            AgentOutcome::Die { retry_at: *retry_at, blocked_by: blocked_by.clone(), ended: ended.clone() }
        }
        _ => answer,
    }
}

/// Another wait of the same agent may have made a lease stronger since: that is another lease.
fn final_grant(decision: &DecisionBuilder<'_>, leases: &[Fence]) -> AgentOutcome {
    let next = |fence: &Fence| {
        let successor = decision.issued_leases().find(|issued| issued.continues == Some(*fence));
        successor.map(|issued| issued.fence)
    };
    let last = |fence: &Fence| std::iter::successors(Some(*fence), next).last().unwrap_or(*fence);
    AgentOutcome::Granted { leases: leases.iter().map(last).collect() }
}
