//! Decides commands: the events that they lead to, and the answer.

pub(super) mod acquire;
mod lease_end;
mod reissue;

use super::api_decisions::check_may_hold;
use super::command::{Command, LeaseCredential};
use super::decision_builder::DecisionBuilder;
use super::name::{Holder, Principal};
use super::newtypes::{Fence, Tick};
use super::outcome::{CommandOutcome, Decision, Rejection};
use super::state::{KernelState, LeaseEntry};
use super::{agent, file, intent, work};
use crate::rules::names::check_name;

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
        Command::Release { lease, claim, reason } => lease_end::release(decision, *lease, claim, *reason),
        Command::Transfer { lease, claim, to, principal, nonce } => {
            reissue::transfer(decision, *lease, claim, to, principal, *nonce)
        }
        Command::Upgrade(change) => reissue::upgrade(decision, change),
        Command::Downgrade(change) => reissue::downgrade(decision, change),
        Command::Revoke { lease, cause, by, detail } => {
            lease_end::revoke(decision, *lease, *cause, by, detail)
        }
        Command::Reclaim { holder, by, detail } => lease_end::reclaim(decision, holder, by, detail),
        Command::Withdraw { ticket, principal, end } => {
            lease_end::withdraw(decision, *ticket, principal, *end)
        }
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
