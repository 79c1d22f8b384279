//! Decides commands: the events that they lead to, and the answer. Each API decides its own.

use super::api_decisions::check_may_hold;
use super::command::Command;
use super::lease::{self, DecisionBuilder};
use super::outcome::{CommandOutcome, Decision, Rejection};
use super::state::KernelState;
use super::{agent, file, intent, work};
use crate::value::Tick;

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
            lease::acquire::acquire(decision, acquire, None)
        }
        Command::Renew { lease, credential: claim, ttl } => lease::renew(decision, *lease, claim, *ttl),
        Command::Release { lease, claim, reason } => lease::release(decision, *lease, claim, *reason),
        Command::Transfer { lease, claim, to, principal, nonce } => {
            lease::transfer(decision, *lease, claim, to, principal, *nonce)
        }
        Command::Upgrade(change) => lease::upgrade(decision, change),
        Command::Downgrade(change) => lease::downgrade(decision, change),
        Command::Revoke { lease, cause, by, detail } => lease::revoke(decision, *lease, *cause, by, detail),
        Command::Reclaim { holder, by, detail } => lease::reclaim(decision, holder, by, detail),
        Command::Withdraw { ticket, principal, end } => lease::withdraw(decision, *ticket, principal, *end),
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
