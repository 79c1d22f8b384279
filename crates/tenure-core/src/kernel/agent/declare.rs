//! Declare: everything that an agent is about to touch, or nothing of it.

use super::decide::check_agent_holder;
use super::decision::{
    end_wait, has_active_attempt, mark_wait_ended, record_change, time_out_wait_entries,
    wait_entries_conflicting, wait_entries_of,
};
use super::wait_die;
use super::wait_die::WaitDieVerdict;
use crate::kernel::agent::{AgentEvent, AgentOutcome, AgentRank, AgentWait, AgentWaitEnd, DeclareManifest};
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::lease::acquire::check_ttl;
use crate::kernel::lease::decision_builder::{DecisionBuilder, Grant};
use crate::kernel::lease::lease_request::{LeaseRequest, drop_covered_requests};
use crate::kernel::outcome::Rejection;
use crate::rules::overlap::is_hierarchical;
use crate::rules::{InvalidInput, check_name, extends, is_expired};
use crate::value::{Fence, Holder, MAX_PRIORITY, Principal, Ticket};

/// Whatever is refused leaves nothing behind: a caller must not fill the disk.
pub(super) fn declare(
    decision: &mut DecisionBuilder<'_>,
    declare: &DeclareManifest,
) -> Result<AgentOutcome, Rejection> {
    decision.check_not_in_restore_quarantine()?;
    check(decision, declare)?;
    check_agent_holder(decision, &declare.agent, &declare.principal)?;
    drop_covered_requests(&declare.requests).for_each(|request| decision.expire_and_serve(&request.resource));
    time_out_wait_entries(decision, usize::MAX);
    // Whether its attempt goes on is known only once everybody knows what it has lost.
    decision.expire_leases_of(&declare.agent);
    let rank = AgentRank { priority: declare.priority, agent: declare.agent.clone() };
    decision.apis.agents.declaring_principal = Some(declare.principal.clone());
    if starts_attempt(decision, declare)? {
        decision.apis.agents.new_attempt = Some(rank.clone());
    }
    let answer = judge(decision, declare, &rank)?;
    wait_die::reevaluate(decision);
    Ok(final_outcome(decision, &declare.agent, answer))
}

fn judge(
    decision: &mut DecisionBuilder<'_>,
    declare: &DeclareManifest,
    rank: &AgentRank,
) -> Result<AgentOutcome, Rejection> {
    let again = wait_entries_of(decision, &declare.agent)
        .find(|pending| are_same_requests(&pending.requests, &declare.requests));
    let again = again.map(|pending| (pending.ticket, pending.until));
    match wait_die::judge(decision, &declare.requests, rank) {
        WaitDieVerdict::Grant => {
            decision.check_may_grant()?;
            let ticket = again.map(|(ticket, _)| ticket);
            check_quota_and_fences(decision, declare, ticket)?;
            start_attempt(decision, declare);
            let leases = grant(decision, &declare.agent, &declare.principal, &declare.requests, ticket);
            Ok(AgentOutcome::Granted { leases })
        }
        WaitDieVerdict::Wait(blocked_by) => {
            let position = position(decision, declare, rank);
            if let Some((ticket, until)) = again {
                return Ok(AgentOutcome::Wait { ticket, position, until, blocked_by });
            }
            enqueue(decision, declare, rank, position, blocked_by)
        }
        WaitDieVerdict::Die(blocked_by) => {
            // Who comes back too early is told the same again, and nothing is written.
            let retry_at = decision.state.agent(&declare.agent).and_then(|agent| agent.retry_at);
            if let Some(retry_at) = retry_at.filter(|retry_at| !is_expired(decision.now.0, retry_at.0))
                && !wait_die::blocks_older_agent(decision, rank)
            {
                return Ok(AgentOutcome::Die { retry_at, blocked_by, ended: Vec::new() });
            }
            decision.check_may_grant()?;
            start_attempt(decision, declare);
            let (retry_at, ended) = wait_die::abort(decision, rank);
            Ok(AgentOutcome::Die { retry_at, blocked_by, ended })
        }
    }
}

fn enqueue(
    decision: &mut DecisionBuilder<'_>,
    declare: &DeclareManifest,
    rank: &AgentRank,
    position: usize,
    blocked_by: Vec<Holder>,
) -> Result<AgentOutcome, Rejection> {
    decision.check_may_grant()?;
    let limits = decision.state.limits();
    let (waiting, requested) = decision.state.waiting_agent_counts();
    if waiting >= limits.max_waiting_agents
        || requested + declare.requests.len() > limits.max_waiting_agent_leases
    {
        return Err(Rejection::QueueFull { what: "agents".into(), max: limits.max_waiting_agents });
    }
    if wait_entries_of(decision, &declare.agent).count() >= limits.max_waiting_per_agent {
        return Err(Rejection::QueueFull {
            what: declare.agent.as_str().into(),
            max: limits.max_waiting_per_agent,
        });
    }
    check_quota_and_fences(decision, declare, None)?;
    let ticket = decision.state.last_ticket().next().ok_or(Rejection::Exhausted)?;
    let until = decision.now.checked_add(declare.wait_timeout).ok_or(Rejection::Exhausted)?;
    let pending =
        AgentWait { ticket, rank: rank.clone(), requests: declare.requests.clone(), at: decision.now, until };
    start_attempt(decision, declare);
    decision.push(Event::Agent(Box::new(AgentEvent::Waits(pending.clone()))));
    decision.apis.agents.new_wait = Some(pending);
    // Whoever younger waits for something of it would wait for an older one now.
    drop_covered_requests(&declare.requests).for_each(|request| record_change(decision, &request.resource));
    Ok(AgentOutcome::Wait { ticket, position, until, blocked_by })
}

/// Whether an attempt begins. The age is said once for an attempt, and a new attempt never makes anybody older.
fn starts_attempt(decision: &DecisionBuilder<'_>, declare: &DeclareManifest) -> Result<bool, Rejection> {
    let known = decision
        .state
        .agent(&declare.agent)
        .and_then(|agent| Some((agent.priority?, agent.hold_time_used_up)));
    let is_engaged = has_active_attempt(decision, &declare.agent);
    match known {
        Some((has, true)) if declare.priority <= has => Err(Rejection::LeaseTimeUsed { has }),
        Some((has, _)) if declare.priority == has && is_engaged => Ok(false),
        Some((has, _)) if is_engaged || declare.priority < has => {
            Err(Rejection::PriorityFixed { current: has })
        }
        _ => Ok(true),
    }
}

/// Says that an attempt begins, if one does. Only once something comes of it: who is refused has begun nothing, and can be
/// refused as often as it likes without filling the disk.
fn start_attempt(decision: &mut DecisionBuilder<'_>, declare: &DeclareManifest) {
    let Some(rank) = decision.apis.agents.new_attempt.clone() else { return };
    decision.push(Event::Agent(Box::new(AgentEvent::Began {
        rank,
        principal: declare.principal.clone(),
        session: declare.session.clone(),
        at: decision.now,
    })));
}

fn check(decision: &DecisionBuilder<'_>, declare: &DeclareManifest) -> Result<(), Rejection> {
    let limits = decision.state.limits();
    let invalid = |field, reason: String| Rejection::from(InvalidInput::new(field, reason));
    check_name("session_id", &declare.session)?;
    if declare.priority > MAX_PRIORITY {
        let reason = format!("is over {MAX_PRIORITY}; say when the attempt began, in milliseconds");
        return Err(invalid("priority_timestamp", reason));
    }
    if declare.requests.is_empty() || declare.requests.len() > limits.max_leases_per_request {
        return Err(invalid(
            "intents",
            format!("has to have from 1 to {} entries", limits.max_leases_per_request),
        ));
    }
    let bytes: usize = declare.requests.iter().map(|request| request.resource.as_str().len()).sum();
    if bytes > limits.max_request_bytes {
        let reason =
            format!("names have {bytes} bytes together; at most {} are allowed", limits.max_request_bytes);
        return Err(invalid("intents", reason));
    }
    let mut names: Vec<_> = declare.requests.iter().map(|request| &request.resource).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(invalid("intents", "names a resource twice".into()));
    }
    let is_plain = |request: &LeaseRequest| {
        is_hierarchical(request.resource.as_str()) && request.alternatives.is_empty()
    };
    if let Some(request) = declare.requests.iter().find(|request| !is_plain(request)) {
        return Err(invalid("intents", format!("{} is of no kind that agents know", request.resource)));
    }
    if declare.wait_timeout.0 == 0 || declare.wait_timeout > limits.max_wait {
        return Err(invalid(
            "waitTimeoutMs",
            "has to be more than nothing, and not over the longest wait".into(),
        ));
    }
    declare.requests.iter().try_for_each(|request| check_ttl(decision, request.ttl))
}

/// Whether there is enough of everything for all of this. `again` is a wait for the very same, which is over with it.
fn check_quota_and_fences(
    decision: &DecisionBuilder<'_>,
    declare: &DeclareManifest,
    again: Option<Ticket>,
) -> Result<(), Rejection> {
    if !has_fences_and_time_for(decision, &declare.requests) {
        return Err(Rejection::Exhausted);
    }
    let Some(max) = decision.state.limits().max_leases_per_principal else { return Ok(()) };
    let has =
        |request: &&LeaseRequest| decision.state.own_lease_on(&declare.agent, &request.resource).is_some();
    let missing = declare.requests.iter().filter(|request| !has(request)).count();
    let counted = again.map_or(0, |_| declare.requests.len());
    let fits = missing == 0
        || max
            .checked_add(counted)
            .and_then(|max| max.checked_sub(missing))
            .is_some_and(|allowed| !decision.exceeds_usage(&declare.principal, allowed, usize::MAX));
    if fits { Ok(()) } else { Err(Rejection::QuotaExceeded { max }) }
}

fn are_same_requests(one: &[LeaseRequest], other: &[LeaseRequest]) -> bool {
    let what = |requests: &[LeaseRequest]| {
        let mut what: Vec<_> =
            requests.iter().map(|request| (request.resource.clone(), request.mode)).collect();
        what.sort_unstable();
        what
    };
    what(one) == what(other)
}

fn position(decision: &DecisionBuilder<'_>, declare: &DeclareManifest, rank: &AgentRank) -> usize {
    let around = drop_covered_requests(&declare.requests)
        .flat_map(|request| wait_entries_conflicting(decision, &request.resource, request.mode));
    let mut older: Vec<_> =
        around.filter(|pending| pending.rank < *rank).map(|pending| pending.ticket).collect();
    older.sort_unstable();
    older.dedup();
    1 + older.len()
}

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
