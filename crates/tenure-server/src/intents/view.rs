//! Sessions as JSON, and their ids.

use tenure_api::{AcceptedIntent, Code, IntentSessionStatus, IntentSessionView};
use tenure_core::kernel::{
    ClockAnchor, Holder, IntentOutcome, IntentSession, IntentSessionEnd, IntentSessionState, IntentTarget,
    KernelState,
};

use super::parse;
use crate::app::format_tick_with_anchor;
use crate::http::response::{HttpError, unexpected};

/// A session, with its times as `anchor` ties them to the world's.
pub(crate) fn view_of(session: &IntentSession, anchor: ClockAnchor) -> IntentSessionView {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let intent = &session.intent;
    let (service_ref, recording_id, start_ms) = match &intent.target {
        IntentTarget::Service(service) => (text(service), None, None),
        IntentTarget::Recording { id, start_ms } => (None, text(id), Some(*start_ms)),
    };
    IntentSessionView {
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
        params: parse::read(&intent.params),
        slot: session.slot,
        worker: session.worker.as_ref().map(|(worker, _)| worker.as_str().to_owned()),
        process: text(&session.process),
        revision: session.revision,
        accepted_at: format_tick_with_anchor(anchor, session.accepted_at),
        changed_at: format_tick_with_anchor(anchor, session.changed_at),
    }
}

/// How ticks are tied to times now.
pub(super) fn clock_anchor(state: &KernelState) -> ClockAnchor {
    state.clock().map_or(ClockAnchor::default(), |clock| clock.anchor)
}

/// What an intent became that is where `state` says.
pub(super) fn accepted(
    session: &IntentSession,
    state: IntentSessionState,
    end: Option<IntentSessionEnd>,
) -> AcceptedIntent {
    AcceptedIntent {
        session_id: session.id.as_str().to_owned(),
        state: state.as_str().to_owned(),
        reason: reason(end),
        outcome: outcome(end),
        correlation_id: session.intent.correlation.to_string(),
    }
}

/// Where a session is, by what was asked or before it.
pub(super) fn session_status(answer: &IntentOutcome) -> Result<IntentSessionStatus, HttpError> {
    let IntentOutcome::Current { state, end } = answer else { return Err(unexpected()) };
    let state = state.as_str().to_owned();
    Ok(IntentSessionStatus { state, reason: reason(*end), outcome: outcome(*end), taken: None })
}

fn reason(end: Option<IntentSessionEnd>) -> Option<String> {
    end.map(|end| end.reason().to_owned())
}

fn outcome(end: Option<IntentSessionEnd>) -> Option<String> {
    end.map(|end| end.outcome().to_owned())
}

/// A name for a session: nobody guesses it, and no other has it.
pub(super) fn new_session_id() -> Result<Holder, HttpError> {
    Ok(Holder::parse(&format!("ses_{}", random()?))?)
}

/// By which a caller that says nothing finds its intent in logs.
pub(super) fn new_correlation_id() -> Result<String, HttpError> {
    Ok(format!("cor_{}", random()?))
}

fn random() -> Result<String, HttpError> {
    let mut bytes = [0; 16];
    let failed = |_| HttpError::new(Code::Internal, "the system gives no random bytes; nothing happened");
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
