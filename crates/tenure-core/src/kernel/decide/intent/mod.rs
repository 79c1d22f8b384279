//! One file per request about sessions: what it leads to.

mod accept;
mod finish;
mod keep;
mod run;
mod stop;
mod take;
mod wipe;

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::intent::{GUARD, IntentAnswer, IntentCommand, ORCHESTRATOR, Session, SessionState};
use crate::kernel::limits::SESSIONS_AT_ONCE;
use crate::kernel::mode::Mode;
use crate::kernel::name::Holder;
use crate::kernel::state::{LeaseEntry, State};
use crate::kernel::value::Fence;
use crate::rules::names::InvalidInput;

pub(super) fn decide(draft: &mut Draft<'_>, command: &IntentCommand) -> Result<Answer, Refusal> {
    let answer = match command {
        IntentCommand::Accept(accept) => accept::accept(draft, accept),
        IntentCommand::Stop { session, by } => stop::stop(draft, session, by),
        IntentCommand::Take(take) => take::take(draft, take),
        IntentCommand::Run { session, guard, process } => run::run(draft, session, *guard, process),
        IntentCommand::Keep { guard, ttl, sessions } => keep::keep(draft, *guard, *ttl, sessions),
        IntentCommand::Finish { session, guard, end, detail } => {
            finish::finish(draft, session, *guard, *end, detail)
        }
        IntentCommand::Wipe { guard, sessions } => wipe::wipe(draft, *guard, sessions),
    };
    answer.map(|answer| Answer::Intent(Box::new(answer)))
}

fn known<'a>(draft: &Draft<'a>, session: &Holder) -> Result<&'a Session, Refusal> {
    let state: &'a State = draft.state;
    state.session(session).ok_or(Refusal::NoSuchSession)
}

/// The guard, if it lives. Whoever asks under another one has been replaced, or was never the worker.
fn guarded<'a>(draft: &Draft<'a>, fence: Fence) -> Result<&'a LeaseEntry, Refusal> {
    let state: &'a State = draft.state;
    let lease = state.find_lease(fence).filter(|lease| draft.lives(lease));
    let is_guard = |lease: &&LeaseEntry| {
        // Several could hold it together in another mode, and anybody could hold it as a plain lease.
        state.resource_name(lease.resource).as_str() == GUARD
            && lease.mode == Mode::Exclusive
            && state.principal_of(lease.holder).1.as_str() == ORCHESTRATOR
    };
    lease.filter(is_guard).ok_or(Refusal::GuardLost)
}

/// A session that a worker has, under the guard that it was taken with.
fn own<'a>(draft: &Draft<'a>, session: &Holder, guard: Fence) -> Result<&'a Session, Refusal> {
    guarded(draft, guard)?;
    let session = known(draft, session)?;
    let is_own = session.worker.as_ref().is_some_and(|(_, taken)| *taken == guard);
    if session.state.is_taken() && !is_own { Err(Refusal::GuardLost) } else { Ok(session) }
}

/// So many sessions in one request are too many for one decision.
fn check_count(sessions: &[Holder]) -> Result<(), Refusal> {
    if sessions.len() > SESSIONS_AT_ONCE {
        let reason =
            format!("has {} entries; at most {SESSIONS_AT_ONCE} are allowed; ask in parts", sessions.len());
        return Err(InvalidInput::new("sessions", reason).into());
    }
    Ok(())
}

fn now_at(session: &Session) -> IntentAnswer {
    IntentAnswer::Now { state: session.state, end: session.end }
}

fn now_in(state: SessionState) -> IntentAnswer {
    IntentAnswer::Now { state, end: None }
}
