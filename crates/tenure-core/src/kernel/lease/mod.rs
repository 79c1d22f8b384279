//! Plain leases: acquire, renew, release, transfer, change of mode, revoke, reclaim, and the FIFO queue.

pub(super) mod acquire;
pub(super) mod assignment;
pub(super) mod deadlock;
pub(super) mod decision_builder;
pub(super) mod lease_request;
mod queue;
mod reissue;

pub(crate) use decision_builder::DecisionBuilder;
pub(super) use reissue::{downgrade, renew, transfer, upgrade};

use super::command::LeaseCredential;
use super::event::{RevocationCause, WaitEnd};
use super::outcome::{CommandOutcome, LeaseEnd, Rejection};
use super::state::{KernelState, LeaseEntry};
use crate::lease::ReleaseReason;
use crate::rules::{InvalidInput, check_name};
use crate::value::{Fence, Holder, Principal, Ticket};

/// The lease that a command is about, if it lives and the caller may act on it.
///
/// One that is over but not announced is announced first: the caller learns that it is over, and whoever
/// waits need not wait for the sweep.
pub(super) fn active_lease<'a>(
    decision: &mut DecisionBuilder<'a>,
    fence: Fence,
    claim: Option<&LeaseCredential>,
) -> Result<&'a LeaseEntry, Rejection> {
    let state: &'a KernelState = decision.state;
    let Some(lease) = state.find_lease(fence) else {
        let ended = state.ended_lease(fence).ok_or(Rejection::NotFound)?;
        let known = claim.is_none_or(|claim| is_authorized(claim, &ended.holder, &ended.principal));
        return Err(if known {
            Rejection::Ended { lease: fence, end: ended.end }
        } else {
            Rejection::NotHolder
        });
    };
    // A token speaks for itself: only a name is compared with names.
    let named = claim.filter(|claim| !matches!(claim, LeaseCredential::Token));
    let holder = || (state.holder_name(lease.holder), state.principal_of(lease.holder).1);
    if !named.is_none_or(|claim| is_authorized(claim, holder().0, holder().1)) {
        return Err(Rejection::NotHolder);
    }
    if !decision.is_active(lease) {
        decision.expire_and_serve(state.resource_name(lease.resource));
        return Err(Rejection::Ended { lease: fence, end: LeaseEnd::Expired });
    }
    Ok(lease)
}

/// A text for people that is stored: it may be empty, but has bounds like a name.
pub(super) fn check_detail(detail: &str) -> Result<(), Rejection> {
    if detail.is_empty() {
        return Ok(());
    }
    Ok(check_name("detail", detail)?)
}

fn is_authorized(claim: &LeaseCredential, holder: &Holder, principal: &Principal) -> bool {
    match claim {
        LeaseCredential::Token => true,
        LeaseCredential::Holder { holder: claimed, principal: own } => claimed == holder && own == principal,
    }
}

/// Releasing what is over succeeds and appends nothing: the caller has what it wants.
pub(super) fn release(
    decision: &mut DecisionBuilder<'_>,
    fence: Fence,
    claim: &LeaseCredential,
    reason: ReleaseReason,
) -> Result<CommandOutcome, Rejection> {
    let lease = match active_lease(decision, fence, Some(claim)) {
        Ok(lease) => lease,
        Err(Rejection::Ended { .. }) => return Ok(CommandOutcome::Released { lease: fence }),
        Err(rejection) => return Err(rejection),
    };
    decision.release(lease, reason);
    Ok(CommandOutcome::Released { lease: fence })
}

pub(super) fn revoke(
    decision: &mut DecisionBuilder<'_>,
    fence: Fence,
    cause: RevocationCause,
    by: &Principal,
    detail: &str,
) -> Result<CommandOutcome, Rejection> {
    check_detail(detail)?;
    if cause == RevocationCause::Transferred {
        let reason = "is for leases that go on under another number; use transfer, upgrade or downgrade";
        return Err(InvalidInput::new("cause", reason).into());
    }
    let lease = active_lease(decision, fence, None)?;
    decision.revoke(lease, cause, by, detail);
    Ok(CommandOutcome::Ended { leases: vec![fence] })
}

/// Only for a holder that is proven dead: a live one is never displaced. The proof is the caller's duty.
pub(super) fn reclaim(
    decision: &mut DecisionBuilder<'_>,
    holder: &Holder,
    by: &Principal,
    detail: &str,
) -> Result<CommandOutcome, Rejection> {
    check_detail(detail)?;
    let state = decision.state;
    let Some(slot) = state.find_holder(holder) else {
        return Ok(CommandOutcome::Ended { leases: Vec::new() });
    };
    // The dead wait for nothing: they leave first, so that none of them is let in on the way.
    for waiting in state.queue_entries_of(slot) {
        if decision.is_waiting(waiting) {
            decision.end_wait(waiting, WaitEnd::Gone);
        }
    }
    // In the order of their numbers: how they lie in memory must not show in the ledger.
    let mut leases: Vec<_> = state.leases_of(slot).filter(|lease| decision.is_active(lease)).collect();
    leases.sort_unstable_by_key(|lease| lease.fence);
    for lease in &leases {
        decision.revoke(lease, RevocationCause::Reclaimed, by, detail);
    }
    Ok(CommandOutcome::Ended { leases: leases.into_iter().map(|lease| lease.fence).collect() })
}

/// A ticket that was served, timed out or withdrawn before is no mistake of the caller's.
pub(super) fn withdraw(
    decision: &mut DecisionBuilder<'_>,
    ticket: Ticket,
    principal: &Principal,
    end: WaitEnd,
) -> Result<CommandOutcome, Rejection> {
    let state = decision.state;
    if ticket > state.last_ticket() {
        return Err(Rejection::NoSuchTicket);
    }
    let Some(waiting) = state.queue_entry(ticket) else {
        return Ok(CommandOutcome::Withdrawn { waited: false });
    };
    if waiting.queued.principal != *principal {
        return Err(Rejection::NoSuchTicket);
    }
    let waited = decision.is_waiting(waiting);
    decision.end_wait(waiting, if waited { end } else { WaitEnd::TimedOut });
    Ok(CommandOutcome::Withdrawn { waited })
}
