//! Acquire: all of the requested leases, or none.

use std::sync::Arc;

use crate::authority::Authority;
use crate::kernel::api_decisions;
use crate::kernel::command::{
    Acquire, ContentionAction, ContentionPolicy, contention_action, refreshes_own_lease,
};
use crate::kernel::event::{Event, QueuedAcquire};
use crate::kernel::lease::assignment::Assignment;
use crate::kernel::lease::decision_builder::{DecisionBuilder, Grant, QueuePosition};
use crate::kernel::lease::lease_request::{LeaseRequest, can_be_assigned, conflicting_overlap};
use crate::kernel::outcome::{CommandOutcome, Rejection};
use crate::kernel::state::IdempotencyOutcome;
use crate::rules::{InvalidInput, extends};
use crate::value::{Fence, Resource, Tick, TickDuration};

/// A lease that begins has `authority`.
pub(in crate::kernel) fn acquire(
    decision: &mut DecisionBuilder<'_>,
    acquire: &Acquire,
    authority: Option<&Arc<Authority>>,
) -> Result<CommandOutcome, Rejection> {
    decision.check_not_in_restore_quarantine()?;
    // First of all: a repeated request finds its first answer, whatever has become of limits and names since.
    if let Some(answer) = find_idempotent_outcome(decision, acquire)? {
        return Ok(answer);
    }
    check(decision, acquire)?;
    for resource in acquire.requests.iter().flat_map(LeaseRequest::resources) {
        decision.expire_and_serve(resource);
    }

    // What it has already is not in its own way, and neither is who waits for that.
    let has = |request: &LeaseRequest, resource: &Resource| {
        own_lease(decision, acquire, request, resource).is_some()
    };
    let assignment = decision.assign_resources(&acquire.requests, QueuePosition::default(), has);
    check_quota(decision, acquire, assignment.as_ref().ok())?;
    let short = match assignment {
        Ok(assignment) => return grant(decision, acquire, &assignment, authority),
        Err(short) => short,
    };
    match contention_action(acquire.contention_policy, decision.now) {
        ContentionAction::Queue { until }
            if !api_decisions::is_barred_from_queue(decision, &acquire.holder) =>
        {
            queue(decision, acquire, until)
        }
        _ => {
            let found = decision.blocker_ending_first(&acquire.requests, &short, has);
            let (resource, blocker) = found.expect("with nothing in the way there is enough for each");
            let (waiting, holder) = (decision.waiter_count(resource), blocker.holder.clone());
            Err(Rejection::Held { resource: resource.clone(), holder, until: blocker.until, waiting })
        }
    }
}

/// The first answer to this request, if it was made before under the same key.
pub(in crate::kernel) fn find_idempotent_outcome(
    decision: &mut DecisionBuilder<'_>,
    acquire: &Acquire,
) -> Result<Option<CommandOutcome>, Rejection> {
    let state = decision.state;
    let Some(key) = acquire.key else { return Ok(None) };
    if refreshes_own_lease(acquire.contention_policy) {
        let reason = "goes with new leases only; a request that refreshes its own may simply be repeated";
        return Err(InvalidInput::new("idempotencyKey", reason).into());
    }
    let Some(principal) = state.find_principal(&acquire.principal) else { return Ok(None) };
    let Some(entry) = state.idempotency_keys().get(principal, key.key, decision.now) else { return Ok(None) };
    if entry.body != key.body {
        return Err(Rejection::KeyReused);
    }
    match &entry.outcome {
        IdempotencyOutcome::Waiting(ticket) => {
            let waiting = state.queue_entry(*ticket);
            // Its key is free for this request only once it is known to be over.
            waiting.into_iter().for_each(|waiting| decision.time_out_if_due(waiting));
            Ok(waiting.filter(|waiting| decision.is_waiting(waiting)).map(|waiting| {
                let place = QueuePosition { before: Some(*ticket) };
                queued_outcome(decision, &waiting.queued, place)
            }))
        }
        IdempotencyOutcome::Spent(_) => Err(Rejection::KeyReused),
        IdempotencyOutcome::Leases(leases) => {
            for fence in leases {
                super::active_lease(decision, *fence, None)?;
            }
            Ok(Some(CommandOutcome::Granted { leases: leases.clone() }))
        }
    }
}

fn check(decision: &DecisionBuilder<'_>, acquire: &Acquire) -> Result<(), Rejection> {
    let limits = decision.state.limits();
    let invalid = |field, reason: String| Rejection::from(InvalidInput::new(field, reason));
    if acquire.requests.is_empty() {
        return Err(invalid("leases", "is empty; ask for at least one resource".into()));
    }
    if acquire.requests.len() > limits.max_leases_per_request {
        let reason = format!(
            "has {} entries; at most {} are allowed",
            acquire.requests.len(),
            limits.max_leases_per_request
        );
        return Err(invalid("leases", reason));
    }
    if acquire.byte_size() > limits.max_request_bytes {
        let reason = format!("names and labels have over {} bytes; ask in parts", limits.max_request_bytes);
        return Err(invalid("leases", reason));
    }
    let max_alternatives = limits.max_alternatives;
    if acquire.requests.iter().any(|request| 1 + request.alternatives.len() > max_alternatives.max(1)) {
        return Err(invalid(
            "leases",
            format!("names over {max_alternatives} resources for one lease; name fewer"),
        ));
    }
    if !can_be_assigned(&acquire.requests) {
        let reason = "names a resource twice, or too few for each lease to be on another; ask for each once";
        return Err(invalid("leases", reason.into()));
    }
    if let Some((one, other)) = conflicting_overlap(&acquire.requests) {
        let reason =
            format!("names {one} and {other}, which overlap and cannot both be held like that; ask for one");
        return Err(invalid("leases", reason));
    }
    acquire.requests.iter().try_for_each(|request| check_ttl(decision, request.ttl))?;
    if let ContentionPolicy::Queue { wait_timeout: patience } = acquire.contention_policy
        && patience > limits.max_wait
    {
        let reason = format!("is over the longest wait of {} ms", limits.max_wait.as_millis());
        return Err(invalid("waitMs", reason));
    }
    if !decision.state.can_use_holder(&acquire.holder, &acquire.principal, decision.now) {
        return Err(Rejection::HolderTaken { holder: acquire.holder.clone() });
    }
    Ok(())
}

/// A time to live that is not permitted is refused, never clamped: the caller counts on what it asked for.
pub(in crate::kernel) fn check_ttl(
    decision: &DecisionBuilder<'_>,
    ttl: TickDuration,
) -> Result<(), Rejection> {
    let limits = decision.state.limits();
    let (shortest, longest) = (limits.min_ttl, limits.max_ttl);
    if ttl < shortest || ttl > longest || ttl == TickDuration(0) {
        return Err(Rejection::TtlOutOfRange { requested: ttl, min: shortest, max: longest });
    }
    Ok(())
}

fn check_quota(
    decision: &DecisionBuilder<'_>,
    acquire: &Acquire,
    assignment: Option<&Assignment>,
) -> Result<(), Rejection> {
    let Some(max) = decision.state.limits().max_leases_per_principal else { return Ok(()) };
    if api_decisions::is_exempt_from_quota(&acquire.principal) {
        return Ok(());
    }
    let has = |request: &LeaseRequest, resource: &Resource| {
        own_lease(decision, acquire, request, resource).is_some()
    };
    let missing = match assignment {
        Some(assignment) => {
            assignment.pairs(&acquire.requests).filter(|(request, resource)| !has(request, resource)).count()
        }
        // It gets nothing now; whatever it gets later, it is at least this.
        None => {
            let requests = acquire.requests.iter();
            requests.filter(|request| !request.resources().any(|resource| has(request, resource))).count()
        }
    };
    let allowed = max.checked_sub(missing).filter(|_| missing > 0);
    let exceeds = match allowed {
        Some(allowed) => decision.exceeds_usage(&acquire.principal, allowed, usize::MAX),
        None => missing > 0,
    };
    if exceeds { Err(Rejection::QuotaExceeded { max }) } else { Ok(()) }
}

fn grant(
    decision: &mut DecisionBuilder<'_>,
    acquire: &Acquire,
    assignment: &Assignment,
    authority: Option<&Arc<Authority>>,
) -> Result<CommandOutcome, Rejection> {
    let (holder, principal, key) = (&acquire.holder, &acquire.principal, acquire.key);
    // All or nothing: whatever could end this half-way is asked before the first grant.
    let own =
        |(request, resource): (&LeaseRequest, &Resource)| own_lease(decision, acquire, request, resource);
    let missing = assignment.pairs(&acquire.requests).filter(|chosen| own(*chosen).is_none()).count();
    let has_time = |request: &LeaseRequest| decision.now.checked_add(request.ttl).is_some();
    // Whether the holder has this already, and would have it for longer.
    let gets_time = |(request, resource): (&LeaseRequest, &Resource)| {
        let until = decision.now.saturating_add(request.ttl);
        own((request, resource)).is_some_and(|(_, expires_at)| extends(expires_at.0, until.0))
    };
    if missing > 0 {
        decision.check_may_grant()?;
    } else if assignment.pairs(&acquire.requests).any(gets_time) {
        decision.check_may_renew()?;
    }
    let outlives = |(request, resource): (&LeaseRequest, &Resource)| {
        let lease = own((request, resource)).and_then(|(fence, _)| decision.state.find_lease(fence));
        let end = lease.and_then(|lease| api_decisions::latest_expiry(decision, lease));
        end.filter(|end| decision.now.saturating_add(request.ttl) > *end)
    };
    if let Some(end) =
        assignment.pairs(&acquire.requests).filter(|chosen| gets_time(*chosen)).find_map(outlives)
    {
        return Err(Rejection::OutlivesParent { remaining: end.since(decision.now) });
    }
    if decision.remaining_fences() < missing as u64 || !acquire.requests.iter().all(has_time) {
        return Err(Rejection::Exhausted);
    }
    let mut leases = Vec::with_capacity(acquire.requests.len());
    for (request, resource) in assignment.pairs(&acquire.requests) {
        let fence = match own_lease(decision, acquire, request, resource) {
            Some((fence, expires_at)) => {
                let until = decision.now.checked_add(request.ttl).ok_or(Rejection::Exhausted)?;
                if extends(expires_at.0, until.0) {
                    decision.push(Event::Renewed {
                        lease: fence,
                        at: decision.now,
                        expires_at: until,
                        ttl: request.ttl,
                    });
                }
                fence
            }
            None => {
                let new = Grant::new(holder, principal, request);
                decision.issue_lease(Grant { resource, key, authority, ..new })?
            }
        };
        leases.push(fence);
    }
    Ok(CommandOutcome::Granted { leases })
}

/// The lease that the holder already has on `resource`, where its face wants that to count. It may have got it
/// in this very decision, because it waited and its turn came.
fn own_lease(
    decision: &DecisionBuilder<'_>,
    acquire: &Acquire,
    request: &LeaseRequest,
    resource: &Resource,
) -> Option<(Fence, Tick)> {
    let state = decision.state;
    if !refreshes_own_lease(acquire.contention_policy) {
        return None;
    }
    let slot = state.find_resource(resource)?;
    let mut leases = state.leases_on(slot);
    let own = leases.find(|lease| {
        lease.terms.mode == request.mode
            && decision.is_active(lease)
            && *state.holder_name(lease.holder) == acquire.holder
    });
    let served = || {
        let mut granted = decision.issued_leases_on(resource);
        granted.find(|issued| issued.terms.mode == request.mode && issued.holder == acquire.holder)
    };
    own.map(|lease| (lease.fence, lease.terms.expires_at))
        .or_else(|| served().map(|issued| (issued.fence, issued.terms.expires_at)))
}

fn queue(
    decision: &mut DecisionBuilder<'_>,
    acquire: &Acquire,
    until: Tick,
) -> Result<CommandOutcome, Rejection> {
    decision.check_may_grant()?;
    let limits = decision.state.limits();
    if acquire.requests.len() > limits.max_leases_per_queued_request
        || acquire.byte_size() > limits.max_queued_request_bytes
    {
        let (leases, bytes) = (limits.max_leases_per_queued_request, limits.max_queued_request_bytes);
        let reason =
            format!("is too large to wait: at most {leases} leases and {bytes} bytes; ask without waiting");
        return Err(InvalidInput::new("leases", reason).into());
    }
    let full = |what: &str, max| Err(Rejection::QueueFull { what: what.into(), max });
    let max = limits.max_waiters_per_resource;
    let mut resources = acquire.requests.iter().flat_map(LeaseRequest::resources);
    if let Some(resource) = resources.find(|resource| decision.waiter_count(resource) >= max) {
        return full(resource.as_str(), max);
    }
    let max = limits.max_waiters_per_principal;
    if max == 0 || decision.exceeds_usage(&acquire.principal, usize::MAX, max - 1) {
        return full(acquire.principal.as_str(), max);
    }
    if let Some(cycle) = decision.find_cycle(&acquire.holder, &acquire.requests) {
        return Err(Rejection::Deadlock { cycle });
    }
    let queued = QueuedAcquire {
        ticket: decision.state.last_ticket().next().ok_or(Rejection::Exhausted)?,
        holder: acquire.holder.clone(),
        principal: acquire.principal.clone(),
        requests: acquire.requests.clone(),
        at: decision.now,
        until,
        key: acquire.key,
    };
    let answer = queued_outcome(decision, &queued, QueuePosition::default());
    decision.push(Event::Queued(queued));
    Ok(answer)
}

fn queued_outcome(
    decision: &DecisionBuilder<'_>,
    queued: &QueuedAcquire,
    place: QueuePosition,
) -> CommandOutcome {
    let ahead = |resource: &Resource| {
        let slot = decision.state.find_resource(resource);
        let queue = slot.into_iter().flat_map(|slot| decision.state.queue_on(slot));
        let older = queue.take_while(|waiting| waiting.queued.ticket < queued.ticket);
        older.filter(|waiting| decision.is_waiting(waiting)).count()
    };
    // One resource of a lease request suffices, so its shortest queue counts. All requests are needed, so the longest of
    // these counts.
    let shortest = |request: &LeaseRequest| request.resources().map(ahead).min().unwrap_or(0);
    let position = 1 + queued.requests.iter().map(shortest).max().unwrap_or(0);
    let each = queued
        .requests
        .iter()
        .flat_map(|request| request.resources().map(|resource| (resource, request.mode)));
    let blockers = each.flat_map(|(resource, mode)| decision.blockers(resource, mode, place));
    let mut blocked_by: Vec<_> = blockers.map(|blocker| blocker.holder.clone()).collect();
    blocked_by.sort_unstable();
    blocked_by.dedup();
    CommandOutcome::Queued { ticket: queued.ticket, position, until: queued.until, blocked_by }
}
