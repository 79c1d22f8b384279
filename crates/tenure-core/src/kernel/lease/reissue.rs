//! Renews leases, hands them over, and changes their mode.

use crate::kernel::api_decisions::{self, check_may_hold};
use crate::kernel::command::{ChangeMode, LeaseCredential};
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::lease::decision_builder::{DecisionBuilder, Grant};
use crate::kernel::lease::lease_request::LeaseRequest;
use crate::kernel::outcome::{CommandOutcome, Rejection};
use crate::kernel::state::{LeaseEntry, QueueEntry};
use crate::rules::extends;
use crate::value::{Fence, Holder, LeaseMode, ModeSet, Nonce, Principal, Tick, TickDuration};

/// Succeeds only if nobody else is in the way, now: two that both hold and both wait to upgrade would
/// wait for ever. Waiters that the lease keeps out already are not overtaken by this; those that it does
/// not keep out yet would be, so they are in the way too.
pub(in crate::kernel) fn upgrade(
    decision: &mut DecisionBuilder<'_>,
    change: &ChangeMode,
) -> Result<CommandOutcome, Rejection> {
    let lease = super::active_lease(decision, change.lease, Some(&change.credential))?;
    if change.mode == lease.terms.mode || !change.mode.covers(lease.terms.mode) {
        return Err(Rejection::WrongDirection { from: lease.terms.mode, to: change.mode, upgrade: true });
    }
    decision.expire_and_serve(decision.state.resource_name(lease.resource));
    if let Some((holder, until)) = first_blocker(decision, lease, change) {
        let resource = decision.state.resource_name(lease.resource).clone();
        let waiting = decision.waiter_count(&resource);
        return Err(Rejection::Held { resource, holder, until, waiting });
    }
    change_mode(decision, lease, change, "upgraded")
}

/// Always possible: whoever goes with the new mode is let in.
pub(in crate::kernel) fn downgrade(
    decision: &mut DecisionBuilder<'_>,
    change: &ChangeMode,
) -> Result<CommandOutcome, Rejection> {
    let lease = super::active_lease(decision, change.lease, Some(&change.credential))?;
    if change.mode == lease.terms.mode || !lease.terms.mode.covers(change.mode) {
        return Err(Rejection::WrongDirection { from: lease.terms.mode, to: change.mode, upgrade: false });
    }
    change_mode(decision, lease, change, "downgraded")
}

fn first_blocker(
    decision: &DecisionBuilder<'_>,
    lease: &LeaseEntry,
    change: &ChangeMode,
) -> Option<(Holder, Tick)> {
    let state = decision.state;
    let resource = state.resource_name(lease.resource);
    let overlapping = state.leases_overlapping(resource).filter(|other| other.fence != lease.fence);
    let mut overlapping =
        overlapping.filter(|other| decision.is_active(other) && !other.terms.mode.is_compatible(change.mode));
    if let Some(other) = overlapping.next() {
        return Some((state.holder_name(other.holder).clone(), other.terms.expires_at));
    }
    // Whoever was let in on the way, by a wait or a lease that was found to be over.
    let mut served = decision.issued_leases_overlapping(resource);
    if let Some(issued) = served.find(|issued| !issued.terms.mode.is_compatible(change.mode)) {
        return Some((issued.holder.clone(), issued.terms.expires_at));
    }
    let new_conflicts =
        ModeSet::conflicting_with(change.mode).difference(ModeSet::conflicting_with(lease.terms.mode));
    let overtaken = state.slots_overlapping(resource).find_map(|slot| {
        let is_overtaken = |waiting: &&QueueEntry| {
            waiting.modes_on(slot).intersects(new_conflicts) && decision.is_waiting(waiting)
        };
        state.queue_on(slot).find(is_overtaken)
    });
    let overtaken = overtaken.map(|waiting| (waiting.queued.holder.clone(), waiting.queued.until));
    overtaken.or_else(|| api_decisions::newly_blocked_wait(decision, resource, lease.terms.mode, change.mode))
}

fn change_mode(
    decision: &mut DecisionBuilder<'_>,
    lease: &LeaseEntry,
    change: &ChangeMode,
    detail: &str,
) -> Result<CommandOutcome, Rejection> {
    let state = decision.state;
    let (holder, principal) = (state.holder_name(lease.holder), state.principal_of(lease.holder).1);
    let (mode, nonce) = (change.mode, change.nonce);
    reissue_lease(decision, lease, ReissuedLease { holder, principal, mode, nonce, detail })
}

/// A renewal that would not extend succeeds and changes nothing: it never shortens.
pub(in crate::kernel) fn renew(
    decision: &mut DecisionBuilder<'_>,
    fence: Fence,
    claim: &LeaseCredential,
    ttl: Option<TickDuration>,
) -> Result<CommandOutcome, Rejection> {
    let lease = super::active_lease(decision, fence, Some(claim))?;
    decision.check_not_in_restore_quarantine()?;
    let ttl = ttl.unwrap_or(lease.terms.ttl);
    super::acquire::check_ttl(decision, ttl)?;
    let expires_at = decision.now.checked_add(ttl).ok_or(Rejection::Exhausted)?;
    if !extends(lease.terms.expires_at.0, expires_at.0) {
        return Ok(CommandOutcome::Renewed { lease: fence, expires_at: lease.terms.expires_at });
    }
    decision.check_may_renew()?;
    if let Some(end) = api_decisions::latest_expiry(decision, lease)
        && expires_at > end
    {
        return Err(Rejection::OutlivesParent { remaining: end.since(decision.now) });
    }
    decision.push(Event::Renewed { lease: fence, at: decision.now, expires_at, ttl });
    Ok(CommandOutcome::Renewed { lease: fence, expires_at })
}

pub(in crate::kernel) fn transfer(
    decision: &mut DecisionBuilder<'_>,
    fence: Fence,
    claim: &LeaseCredential,
    to: &Holder,
    principal: &Principal,
    nonce: Nonce,
) -> Result<CommandOutcome, Rejection> {
    let lease = super::active_lease(decision, fence, Some(claim))?;
    let from = decision.state.holder_name(lease.holder);
    api_decisions::check_may_transfer(decision, from)?;
    if !decision.state.can_use_holder(to, principal, decision.now) {
        return Err(Rejection::HolderTaken { holder: to.clone() });
    }
    if let Some(max) = decision.state.limits().max_leases_per_principal {
        let own = decision.state.principal_of(lease.holder).1 == principal;
        if !own && (max == 0 || decision.exceeds_usage(principal, max - 1, usize::MAX)) {
            return Err(Rejection::QuotaExceeded { max });
        }
    }
    check_overlapping_leases(decision, lease, to)?;
    // Whoever waits for this lease will wait for `to`: if that one waits for them, nobody ever moves. Not by this
    // lease, though: whoever gets it no longer waits for who had it.
    if let Some(cycle) =
        decision.evaluate_without_lease(lease, |decision| decision.find_cycle_after_transfer(lease, to))
    {
        return Err(Rejection::Deadlock { cycle });
    }
    reissue_lease(
        decision,
        lease,
        ReissuedLease { holder: to, principal, mode: lease.terms.mode, nonce, detail: "transferred" },
    )
}

/// Who holds a folder may also hold what is below it. In other hands, the two would be apart.
fn check_overlapping_leases(
    decision: &DecisionBuilder<'_>,
    lease: &LeaseEntry,
    to: &Holder,
) -> Result<(), Rejection> {
    let state = decision.state;
    let resource = state.resource_name(lease.resource);
    let mut overlapping = state.leases_overlapping(resource).filter(|other| other.fence != lease.fence);
    let conflict = overlapping.find(|other| {
        decision.is_active(other)
            && !other.terms.mode.is_compatible(lease.terms.mode)
            && state.holder_name(other.holder) != to
    });
    let Some(other) = conflict else { return Ok(()) };
    let (resource, holder) = (state.resource_name(other.resource), state.holder_name(other.holder).clone());
    let waiting = decision.waiter_count(resource);
    Err(Rejection::Held { resource: resource.clone(), holder, until: other.terms.expires_at, waiting })
}

pub(super) struct ReissuedLease<'a> {
    pub(super) holder: &'a Holder,
    pub(super) principal: &'a Principal,
    pub(super) mode: LeaseMode,
    pub(super) nonce: Nonce,
    pub(super) detail: &'a str,
}

/// Ends a lease and issues its successor at the same tick, with a full time to live and a new fence, so
/// that whatever the predecessor still sends is recognised as old.
pub(in crate::kernel) fn reissue_lease(
    decision: &mut DecisionBuilder<'_>,
    lease: &LeaseEntry,
    successor: ReissuedLease<'_>,
) -> Result<CommandOutcome, Rejection> {
    let state = decision.state;
    decision.check_may_grant()?;
    check_may_hold(decision, successor.holder, successor.principal)?;
    api_decisions::check_may_reissue(decision, lease)?;
    if decision.now.checked_add(lease.terms.ttl).is_none() || decision.remaining_fences() == 0 {
        return Err(Rejection::Exhausted);
    }
    let by = state.principal_of(lease.holder).1;
    decision.revoke(lease, RevocationCause::Transferred, by, successor.detail);
    let resource = state.resource_name(lease.resource);
    let request = LeaseRequest::new(resource.clone(), successor.mode, lease.terms.ttl, successor.nonce);
    let request = request.with_labels(lease.terms.labels.clone());
    let fence = decision.issue_lease(Grant {
        continues: Some(lease.fence),
        ..Grant::new(successor.holder, successor.principal, &request)
    })?;
    Ok(CommandOutcome::Reissued { old_lease: lease.fence, lease: fence })
}
