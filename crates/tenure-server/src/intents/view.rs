//! Sessions as JSON, and their ids.

use tenure_api::{Code, IntentAccepted, SessionNow, SessionView};
use tenure_core::kernel::{Anchor, Holder, IntentAnswer, Session, SessionEnd, SessionState, State, Target};

use super::read;
use crate::http::answer::Failure;
use crate::http::names::time_by;
use crate::http::refusal::unexpected;

/// A session, with its times as `anchor` ties them to the world's.
pub(crate) fn view_of(session: &Session, anchor: Anchor) -> SessionView {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let intent = &session.intent;
    let (service_ref, recording_id, start_ms) = match &intent.target {
        Target::Service(service) => (text(service), None, None),
        Target::Recording { id, start_ms } => (None, text(id), Some(*start_ms)),
    };
    SessionView {
        session_id: session.id.as_str().to_owned(),
        state: session.state.as_str().to_owned(),
        reason: reason(session.end),
        outcome: outcome(session.end),
        detail: text(&session.detail),
        correlation_id: intent.correlation.to_string(),
        service_ref,
        recording_id,
        start_ms,
        profile_id: intent.profile.to_string(),
        params: read::read(&intent.params),
        slot: session.slot,
        worker: session.worker.as_ref().map(|(worker, _)| worker.as_str().to_owned()),
        process: text(&session.process),
        revision: session.revision,
        accepted_at: time_by(anchor, session.accepted_at),
        changed_at: time_by(anchor, session.changed_at),
    }
}

/// How ticks are tied to times now.
pub(super) fn anchor(state: &State) -> Anchor {
    state.clock().map_or(Anchor::default(), |clock| clock.anchor)
}

/// What an intent became that is where `state` says.
pub(super) fn accepted(session: &Session, state: SessionState, end: Option<SessionEnd>) -> IntentAccepted {
    IntentAccepted {
        session_id: session.id.as_str().to_owned(),
        state: state.as_str().to_owned(),
        reason: reason(end),
        outcome: outcome(end),
        correlation_id: session.intent.correlation.to_string(),
    }
}

/// Where a session is, by what was asked or before it.
pub(super) fn now_at(answer: &IntentAnswer) -> Result<SessionNow, Failure> {
    let IntentAnswer::Now { state, end } = answer else { return Err(unexpected()) };
    let state = state.as_str().to_owned();
    Ok(SessionNow { state, reason: reason(*end), outcome: outcome(*end), taken: None })
}

fn reason(end: Option<SessionEnd>) -> Option<String> {
    end.map(|end| end.reason().to_owned())
}

fn outcome(end: Option<SessionEnd>) -> Option<String> {
    end.map(|end| end.outcome().to_owned())
}

/// A name for a session: nobody guesses it, and no other has it.
pub(super) fn session() -> Result<Holder, Failure> {
    Ok(Holder::parse(&format!("ses_{}", random()?))?)
}

/// By which a caller that says nothing finds its intent in logs.
pub(super) fn correlation() -> Result<String, Failure> {
    Ok(format!("cor_{}", random()?))
}

fn random() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    let failed = |_| Failure::new(Code::Internal, "the system gives no random bytes; nothing happened");
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
