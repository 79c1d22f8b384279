//! Agents and their leases as they are shown.

use tenure_api::{AgentLease, AgentView, AgentWait, ResourceAccess};
use tenure_core::kernel::{
    self, AgentRecord, Fence, Holder, KernelState, LeaseMode, LeaseView, Resource, Tick,
};
use tenure_core::rules::{is_expired, remaining};

use crate::app::tick_to_rfc3339;
use crate::http::auth::Caller;

/// The lease with this number, dead or alive, as it is at `at`.
pub(super) fn lease(state: &KernelState, fence: Fence, at: Tick) -> Option<AgentLease> {
    if let Some(lease) = state.lease(fence) {
        return Some(active_lease(state, &lease, at));
    }
    let ended = state.ended_lease(fence)?;
    Some(AgentLease {
        id: state.ledger_tag().lease_id(fence),
        resource: ended.resource.as_str().to_owned(),
        predicate: ended.terms.mode.as_str().to_owned(),
        agent_id: ended.holder.as_str().to_owned(),
        acquired_at: tick_to_rfc3339(state, ended.terms.issued_at),
        expires_at: tick_to_rfc3339(state, ended.terms.expires_at),
        ttl: ended.terms.ttl.as_millis(),
        fence: fence.0,
        remaining_ms: 0,
    })
}

/// A lease that nobody has announced to be over.
pub(super) fn active_lease(state: &KernelState, lease: &LeaseView<'_>, at: Tick) -> AgentLease {
    AgentLease {
        id: state.ledger_tag().lease_id(lease.fence),
        resource: lease.resource.as_str().to_owned(),
        predicate: lease.terms.mode.as_str().to_owned(),
        agent_id: lease.holder.as_str().to_owned(),
        acquired_at: tick_to_rfc3339(state, lease.terms.issued_at),
        expires_at: tick_to_rfc3339(state, lease.terms.expires_at),
        ttl: lease.terms.ttl.as_millis(),
        fence: lease.fence.0,
        remaining_ms: remaining(at.0, lease.terms.expires_at.0) / 1_000,
    }
}

/// An agent as it is, or nothing of it where the caller's token reaches nothing that it has to do with.
pub(super) fn agent(
    state: &KernelState,
    caller: &Caller,
    id: &Holder,
    agent: &AgentRecord,
    now: Tick,
) -> Option<AgentView> {
    let is_seen = |resource: &Resource| caller.can_see(resource.as_str());
    let held = state.leases_of_holder(id).filter(|lease| !is_expired(now.0, lease.terms.expires_at.0));
    let mut leases: Vec<_> =
        held.filter(|lease| is_seen(lease.resource)).map(|lease| active_lease(state, &lease, now)).collect();
    leases.sort_unstable_by_key(|lease| lease.fence);
    let pending = state.wait_entries_of(id).filter(|pending| !is_expired(now.0, pending.until.0));
    let pending_views: Vec<_> = pending.filter_map(|pending| wait(state, caller, pending, now)).collect();
    let is_own = agent.principal == caller.principal;
    if !caller.resources.is_empty() && !is_own && leases.is_empty() && pending_views.is_empty() {
        return None;
    }
    let retry_at = agent.retry_at.filter(|retry_at| !is_expired(now.0, retry_at.0));
    Some(AgentView {
        agent_id: id.as_str().to_owned(),
        session_id: agent.session.to_string(),
        state: agent.phase.map(|phase| phase.as_str().to_owned()),
        priority_timestamp: agent.priority,
        epoch: agent.epoch,
        changed_at: tick_to_rfc3339(state, agent.changed_at),
        leases,
        waits: pending_views,
        deaths: agent.abort_count,
        retry_after_ms: retry_at.map(|retry_at| retry_at.since(now).0.div_ceil(1_000)),
        outside: agent
            .outside_resources
            .iter()
            .filter(|name| is_own || is_seen(name))
            .map(|name| name.as_str().to_owned())
            .collect(),
        held_ms: agent.hold_time(now).as_millis(),
        pending: Vec::new(),
    })
}

fn wait(state: &KernelState, caller: &Caller, pending: &kernel::AgentWait, now: Tick) -> Option<AgentWait> {
    let seen = || pending.requests.iter().filter(|request| caller.can_see(request.resource.as_str()));
    let requested: Vec<_> = seen().map(|request| resource_access(&request.resource, request.mode)).collect();
    let ahead = seen().flat_map(|request| conflicting_leases(state, &request.resource, request.mode, now));
    let ahead = ahead.map(|lease| lease.holder).filter(|holder| **holder != pending.rank.agent);
    let blocked_by = unique_holder_names(ahead);
    (!requested.is_empty()).then(|| AgentWait {
        wants: requested,
        since: tick_to_rfc3339(state, pending.at),
        wait_until: tick_to_rfc3339(state, pending.until),
        blocked_by,
    })
}

/// A resource, and in which way.
pub(super) fn resource_access(resource: &Resource, mode: LeaseMode) -> ResourceAccess {
    ResourceAccess { resource: resource.as_str().to_owned(), predicate: mode.as_str().to_owned() }
}

/// The living leases that have something in common with `resource` and do not go with `mode`.
pub(super) fn conflicting_leases<'a>(
    state: &'a KernelState,
    resource: &'a Resource,
    mode: LeaseMode,
    now: Tick,
) -> impl Iterator<Item = LeaseView<'a>> {
    let around = state.leases_overlapping_resource(resource);
    around.filter(move |lease| {
        !lease.terms.mode.is_compatible(mode) && !is_expired(now.0, lease.terms.expires_at.0)
    })
}

/// Each name once, in their order.
pub(super) fn unique_holder_names<'a>(holders: impl Iterator<Item = &'a Holder>) -> Vec<String> {
    let once: std::collections::BTreeSet<_> = holders.collect();
    once.into_iter().map(|holder| holder.as_str().to_owned()).collect()
}

pub(super) fn holder_names(holders: &[Holder]) -> Vec<String> {
    holders.iter().map(|holder| holder.as_str().to_owned()).collect()
}
