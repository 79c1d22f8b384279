//! `POST /api/v3/worker/finish`: its pipeline is gone.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::{FinishSession, SessionNow};
use tenure_core::kernel::{Fence, IntentCommand, SessionEnd};

use super::{Answer, FromWorker, WorkerRequest, answer, ask, session_named};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::fields::Fields;
use crate::intents::view::now_at;

/// Say that a session's pipeline is gone.
///
/// The session is over, and what it holds is free.
#[utoipa::path(
    post,
    path = "/api/v3/worker/finish",
    tag = "worker",
    operation_id = "workerFinish",
    request_body = FinishSession,
    responses((status = 200, description = "Where the session is", body = SessionNow)),
    extensions(("x-codes" = json!(["NOT_FOUND", "GUARD_LOST"])))
)]
pub(super) async fn ask_finish(State(app): State<Arc<App>>, from: FromWorker<FinishSession>) -> Answer {
    answer(finish(&app, &from.request).await)
}

/// The ends that a worker sees.
const ENDS: [SessionEnd; 5] = [
    SessionEnd::Completed,
    SessionEnd::Failed,
    SessionEnd::Stopped,
    SessionEnd::LeaseLost,
    SessionEnd::WorkerStopped,
];

impl WorkerRequest for FinishSession {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self {
            guard: fields.number("guard")?,
            session_id: fields.text("session_id")?,
            reason: fields.text("reason")?,
            detail: fields.optional_text("detail")?,
        })
    }
}

/// Ends a session.
pub(in crate::intents) async fn finish(app: &App, request: &FinishSession) -> Result<SessionNow, Failure> {
    let end = ENDS.into_iter().find(|end| end.reason() == request.reason);
    let end = end.ok_or_else(|| {
        let reasons = ENDS.map(SessionEnd::reason).join(", ");
        Failure::invalid("reason", &format!("must be one of {reasons}"))
    })?;
    let (session, guard) = (session_named(&request.session_id)?, Fence(request.guard));
    let detail = request.detail.as_deref().unwrap_or_default().into();
    now_at(&ask(app, IntentCommand::Finish { session, guard, end, detail }).await?)
}
