//! Decides commands: the events that they lead to, and the answer.

mod acquire;
mod agent;
mod change;
mod end;
mod file;
mod intent;
mod work;

use super::answer::{Answer, Decision, Refusal};
use super::command::{Claim, Command};
use super::draft::Draft;
use super::file::FILES;
use super::name::{Holder, Principal};
use super::state::{LeaseEntry, State};
use super::value::{Fence, Tick};
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
/// use tenure_core::kernel::{Answer, Command, State, Tick, decide};
/// let decision = decide(&State::default(), &Command::Expire { most: 100 }, Tick(0));
/// assert_eq!(decision.answer, Answer::Swept { more: false });
/// assert!(decision.events.is_empty());
/// ```
pub fn decide(state: &State, command: &Command, now: Tick) -> Decision {
    let mut draft = Draft::new(state, now);
    let answer = answer(&mut draft, command);
    draft.finish(answer)
}

fn answer(draft: &mut Draft<'_>, command: &Command) -> Result<Answer, Refusal> {
    match command {
        Command::Acquire(acquire) => {
            check_may_hold(draft, &acquire.holder, &acquire.principal)?;
            acquire::acquire(draft, acquire, None)
        }
        Command::Renew { lease, claim, ttl } => change::renew(draft, *lease, claim, *ttl),
        Command::Release { lease, claim, reason } => end::release(draft, *lease, claim, *reason),
        Command::Transfer { lease, claim, to, principal, nonce } => {
            change::transfer(draft, *lease, claim, to, principal, *nonce)
        }
        Command::Upgrade(change) => change::upgrade(draft, change),
        Command::Downgrade(change) => change::downgrade(draft, change),
        Command::Revoke { lease, cause, by, detail } => end::revoke(draft, *lease, *cause, by, detail),
        Command::Reclaim { holder, by, detail } => end::reclaim(draft, holder, by, detail),
        Command::Withdraw { ticket, principal, end } => end::withdraw(draft, *ticket, principal, *end),
        Command::Agent(command) => agent::decide(draft, command),
        Command::File(command) => file::decide(draft, command),
        Command::Intent(command) => intent::decide(draft, command),
        Command::Work(command) => work::decide(draft, command),
        // Whose turn came while nothing could be granted.
        Command::Serve { most } => {
            draft.check_may_grant()?;
            Ok(Answer::Swept { more: draft.serve_oldest(*most) })
        }
        // The sweep makes notices prompt; it does not make grants safe.
        Command::Expire { most } => Ok(Answer::Swept { more: draft.sweep(*most) }),
    }
}

/// The lease that a command is about, if it lives and the caller may act on it.
///
/// One that is over but not announced is announced first: the caller learns that it is over, and whoever
/// waits need not wait for the sweep.
fn living<'a>(draft: &mut Draft<'a>, fence: Fence, claim: Option<&Claim>) -> Result<&'a LeaseEntry, Refusal> {
    let state: &'a State = draft.state;
    let Some(lease) = state.find_lease(fence) else {
        let ended = state.ended(fence).ok_or(Refusal::NotFound)?;
        let known = claim.is_none_or(|claim| speaks_for(claim, &ended.holder, &ended.principal));
        return Err(if known { Refusal::Over { lease: fence, end: ended.end } } else { Refusal::NotHolder });
    };
    // A token speaks for itself: only a name is compared with names.
    let named = claim.filter(|claim| !matches!(claim, Claim::Token));
    let holder = || (state.holder_name(lease.holder), state.principal_of(lease.holder).1);
    if !named.is_none_or(|claim| speaks_for(claim, holder().0, holder().1)) {
        return Err(Refusal::NotHolder);
    }
    if !draft.lives(lease) {
        draft.settle(state.resource_name(lease.resource));
        return Err(Refusal::Over { lease: fence, end: super::answer::End::Expired });
    }
    Ok(lease)
}

/// What a session holds is decided with the session and nowhere else: under its name nobody gets anything.
fn check_is_no_session(draft: &Draft<'_>, holder: &Holder) -> Result<(), Refusal> {
    let is_session = draft.state.session(holder).is_some() || draft.state.file_session(holder).is_some();
    if is_session { Err(Refusal::HolderTaken { holder: holder.clone() }) } else { Ok(()) }
}

/// In the name of all sessions of coding agents nobody else gets anything either.
fn check_may_hold(draft: &Draft<'_>, holder: &Holder, principal: &Principal) -> Result<(), Refusal> {
    if principal.as_str() == FILES {
        return Err(Refusal::HolderTaken { holder: holder.clone() });
    }
    check_is_no_session(draft, holder)
}

/// A text for people that is stored: it may be empty, but has bounds like a name.
fn check_detail(detail: &str) -> Result<(), Refusal> {
    if detail.is_empty() {
        return Ok(());
    }
    Ok(check_name("detail", detail)?)
}

fn speaks_for(claim: &Claim, holder: &Holder, principal: &Principal) -> bool {
    match claim {
        Claim::Token => true,
        Claim::Holder { holder: claimed, principal: own } => claimed == holder && own == principal,
    }
}
