//! Decides commands: the events that they lead to, and the answer.

pub(super) mod acquire;
mod reissue;

use super::api_decisions::check_may_hold;
use super::command::{Command, LeaseCredential};
use super::decision_builder::DecisionBuilder;
use super::newtypes::{Fence, Holder, Principal, Tick};
use super::outcome::{CommandOutcome, Decision, Rejection};
use super::state::{KernelState, LeaseEntry};
use super::{agent, file, intent, work};
use crate::kernel::event::{RevocationCause, WaitEnd};
use crate::kernel::newtypes::Ticket;
use crate::lease::ReleaseReason;
use crate::rules::{InvalidInput, check_name};

/// Answers `command` at `now`: what to append, and what to say.
///
/// Reads `state`, changes nothing, and touches no clock, disk or random source, so the same three
/// arguments always give the same answer. A refusal may carry events too: an expiry that was found on
/// the way, and whom that let in.
///
/// A lease past its end counts as free even if nobody has sent [`Command::Expire`] yet.
///
/// ```
/// use tenure_core::kernel::{Command, CommandOutcome, KernelState, Tick, decide};
/// let decision = decide(&KernelState::default(), &Command::Expire { max_ended: 100 }, Tick(0));
/// assert_eq!(decision.outcome, CommandOutcome::Swept { more: false });
/// assert!(decision.events.is_empty());
/// ```
pub fn decide(state: &KernelState, command: &Command, now: Tick) -> Decision {
    let mut decision = DecisionBuilder::new(state, command, now);
    let answer = dispatch(&mut decision, command);
    decision.finish(answer)
}

fn dispatch(decision: &mut DecisionBuilder<'_>, command: &Command) -> Result<CommandOutcome, Rejection> {
    match command {
        Command::Acquire(acquire) => {
            check_may_hold(decision, &acquire.holder, &acquire.principal)?;
            acquire::acquire(decision, acquire, None)
        }
        Command::Renew { lease, credential: claim, ttl } => reissue::renew(decision, *lease, claim, *ttl),
        Command::Release { lease, claim, reason } => release(decision, *lease, claim, *reason),
        Command::Transfer { lease, claim, to, principal, nonce } => {
            reissue::transfer(decision, *lease, claim, to, principal, *nonce)
        }
        Command::Upgrade(change) => reissue::upgrade(decision, change),
        Command::Downgrade(change) => reissue::downgrade(decision, change),
        Command::Revoke { lease, cause, by, detail } => revoke(decision, *lease, *cause, by, detail),
        Command::Reclaim { holder, by, detail } => reclaim(decision, holder, by, detail),
        Command::Withdraw { ticket, principal, end } => withdraw(decision, *ticket, principal, *end),
        Command::Agent(command) => agent::decide(decision, command),
        Command::File(command) => file::decide(decision, command),
        Command::Intent(command) => intent::decide(decision, command),
        Command::Work(command) => work::decide(decision, command),
        // Whose turn came while nothing could be granted.
        Command::ServeWaiters { max_waiters } => {
            decision.check_may_grant()?;
            Ok(CommandOutcome::Swept { more: decision.serve_oldest_waiters(*max_waiters) })
        }
        // The sweep makes notices prompt; it does not make grants safe.
        Command::Expire { max_ended } => Ok(CommandOutcome::Swept { more: decision.sweep(*max_ended) }),
    }
}

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
        return Err(Rejection::Ended { lease: fence, end: super::outcome::LeaseEnd::Expired });
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
fn release(
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

fn revoke(
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
fn reclaim(
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
fn withdraw(
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
