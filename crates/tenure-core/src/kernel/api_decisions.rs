//! Where a decision about leases meets the other APIs: agents, intents, work and files.
//!
//! The lease part of a decision calls the functions of this file and no other code of these APIs. Except for the sweep,
//! each of them returns at once if neither the state nor the command involves another API.

use super::agent::{self, AgentDecision, conflicts_with};
use super::command::Command;
use super::file::{self, FILES_PRINCIPAL};
use super::intent::{self, IntentDecision, ORCHESTRATOR_PRINCIPAL};
use super::lease::decision_builder::{Blocker, DecisionBuilder};
use super::lease::lease_request::LeaseRequest;
use super::outcome::Rejection;
use super::state::{KernelState, LeaseEntry, Slot};
use super::work;
use crate::value::{Fence, Holder, LeaseMode, Principal, Resource, Tick};

/// What the other APIs add to a decision. Work and files add events alone.
pub(crate) struct ApiDecisions {
    /// Whether the state or the command involves another API than plain leases.
    are_involved: bool,
    pub(super) agents: AgentDecision,
    pub(super) intents: IntentDecision,
}

impl ApiDecisions {
    pub(super) fn new(state: &KernelState, command: &Command) -> Self {
        let is_plain =
            !matches!(command, Command::Agent(_) | Command::File(_) | Command::Intent(_) | Command::Work(_));
        Self {
            are_involved: !is_plain || !state.has_only_plain_leases(),
            agents: AgentDecision::default(),
            intents: IntentDecision::default(),
        }
    }
}

/// Adds the ends of the leases derived from `lease`, which is about to end.
pub(super) fn end_dependents(decision: &mut DecisionBuilder<'_>, lease: Fence) {
    if decision.apis.are_involved {
        work::end_derived_leases(decision, lease);
    }
}

/// Records that `lease` ended: a session may have lost it.
pub(super) fn record_end(decision: &mut DecisionBuilder<'_>, lease: &LeaseEntry) {
    if decision.apis.are_involved {
        intent::record_lost_lease(decision, lease);
    }
}

/// Records that a lease or a wait began or ended on `resource`: an agent may wait for it.
pub(super) fn record_change(decision: &mut DecisionBuilder<'_>, resource: &Resource) {
    if decision.apis.are_involved {
        agent::record_change(decision, resource);
    }
}

/// Announces timed-out waits that may block a request for `resource`.
pub(super) fn time_out_before_queue(decision: &mut DecisionBuilder<'_>, resource: &Resource) {
    if decision.apis.are_involved {
        agent::time_out_wait_entries_near(decision, resource);
    }
}

/// Ends the sessions that lost a lease, then serves or aborts the waiting agents around whom something changed: agents
/// come before the queue.
pub(super) fn serve_before_queue(decision: &mut DecisionBuilder<'_>) {
    if decision.apis.are_involved {
        intent::end_orphaned_sessions(decision);
        agent::reevaluate(decision);
    }
}

/// Serves or aborts all waiting agents.
pub(super) fn serve_all_before_queue(decision: &mut DecisionBuilder<'_>) {
    if decision.apis.are_involved {
        agent::reevaluate_all(decision);
    }
}

/// Ends what is due. `max` bounds the sessions together with the leases and waiters that ended already, and by itself
/// each kind of what agents lose. Returns whether more is due.
pub(super) fn sweep(decision: &mut DecisionBuilder<'_>, max: usize) -> bool {
    let remaining = max.saturating_sub(decision.ended_leases.len() + decision.ended_waiters.len());
    let has_more_sessions = intent::sweep_sessions(decision, remaining);
    let has_more_agents = agent::enforce_limits(decision, max);
    has_more_sessions || has_more_agents
}

/// The waits that block a request before any waiter in the queue does.
pub(super) fn blockers_before_queue<'b>(
    decision: &'b DecisionBuilder<'_>,
    resource: &'b Resource,
    mode: LeaseMode,
) -> impl Iterator<Item = Blocker<'b>> {
    let entries =
        decision.apis.are_involved.then(|| agent::wait_entries_conflicting(decision, resource, mode));
    let entries = entries.into_iter().flatten();
    entries.map(|pending| Blocker { holder: &pending.rank.agent, until: pending.until })
}

/// A wait that a lease on `resource` would block if its mode changed from `old` to `new`, and does not block yet.
pub(super) fn newly_blocked_wait(
    decision: &DecisionBuilder<'_>,
    resource: &Resource,
    old: LeaseMode,
    new: LeaseMode,
) -> Option<(Holder, Tick)> {
    if !decision.apis.are_involved {
        return None;
    }
    let mut entries = agent::wait_entries_conflicting(decision, resource, new);
    let wait = entries.find(|pending| !conflicts_with(&pending.requests, resource, old))?;
    Some((wait.rank.agent.clone(), wait.until))
}

/// Whether a holder must not enter the queue.
pub(super) fn is_barred_from_queue(decision: &DecisionBuilder<'_>, holder: &Holder) -> bool {
    decision.apis.are_involved && agent::is_barred_from_queue(decision, holder)
}

/// How many leases a principal waits for outside the queue.
pub(super) fn requested_lease_count(decision: &DecisionBuilder<'_>, principal: &Principal) -> usize {
    if decision.apis.are_involved { agent::requested_lease_count(decision, principal) } else { 0 }
}

/// What a holder requests outside the queue, blocked and behind every other request.
pub(super) fn requests_behind_queue<'d>(
    decision: &'d DecisionBuilder<'_>,
    holder: Slot,
) -> impl Iterator<Item = &'d LeaseRequest> {
    let requests = decision.apis.are_involved.then(|| file::blocked_requests_of(decision, holder));
    requests.into_iter().flatten()
}

/// Whether the number of leases of a principal is not limited. Sessions have limits of their own.
pub(super) fn is_exempt_from_quota(principal: &Principal) -> bool {
    principal.as_str() == ORCHESTRATOR_PRINCIPAL
}

/// When `lease` ends at the latest, whatever renews it.
pub(super) fn latest_expiry(decision: &DecisionBuilder<'_>, lease: &LeaseEntry) -> Option<Tick> {
    if decision.apis.are_involved { work::parent_expires_at(decision, lease) } else { None }
}

/// Rejects a holder that gets leases only together with its session, and the principal that holds all files.
pub(super) fn check_may_hold(
    decision: &DecisionBuilder<'_>,
    holder: &Holder,
    principal: &Principal,
) -> Result<(), Rejection> {
    let state = decision.state;
    let is_session = || state.intent_session(holder).is_some() || state.file_session(holder).is_some();
    if principal.as_str() == FILES_PRINCIPAL || decision.apis.are_involved && is_session() {
        return Err(Rejection::HolderTaken { holder: holder.clone() });
    }
    Ok(())
}

/// Rejects the transfer of a file from its session: only a person moves it to another session.
pub(super) fn check_may_transfer(decision: &DecisionBuilder<'_>, from: &Holder) -> Result<(), Rejection> {
    if decision.apis.are_involved && decision.state.file_session(from).is_some() {
        return Err(Rejection::HolderTaken { holder: from.clone() });
    }
    Ok(())
}

/// Rejects a successor for a lease with authority, which belongs to its fence.
pub(super) fn check_may_reissue(decision: &DecisionBuilder<'_>, lease: &LeaseEntry) -> Result<(), Rejection> {
    if decision.apis.are_involved && decision.state.work_lease(lease.fence).is_some() {
        return Err(Rejection::AuthorityBound);
    }
    Ok(())
}
