//! `POST /api/v3/worker/wipe`: clean up what a worker before left behind.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::{WipeSessions, WipedSessions};
use tenure_core::kernel::{Fence, IntentAnswer, IntentCommand};

use super::{Answer, FromWorker, WorkerRequest, answer, ask, read_sessions, sessions_named};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::fields::Fields;
use crate::http::refusal::unexpected;

/// Say that the processes of these sessions are gone, and so is their worker.
///
/// They are over, and what they hold is free. Sessions of the asker's own guard stay.
#[utoipa::path(
    post,
    path = "/api/v3/worker/wipe",
    tag = "worker",
    operation_id = "workerWipe",
    request_body = WipeSessions,
    responses((status = 200, description = "How many were over by it", body = WipedSessions)),
    extensions(("x-codes" = json!(["GUARD_LOST"])))
)]
pub(super) async fn ask_wipe(State(app): State<Arc<App>>, from: FromWorker<WipeSessions>) -> Answer {
    answer(wipe(&app, &from.request).await)
}

impl WorkerRequest for WipeSessions {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self { guard: fields.number("guard")?, sessions: read_sessions(fields)? })
    }
}

/// Ends them.
pub(in crate::intents) async fn wipe(app: &App, request: &WipeSessions) -> Result<WipedSessions, Failure> {
    let (guard, sessions) = (Fence(request.guard), sessions_named(&request.sessions)?);
    let answer = ask(app, IntentCommand::Wipe { guard, sessions }).await?;
    let IntentAnswer::Wiped { sessions } = answer else { return Err(unexpected()) };
    Ok(WipedSessions { wiped: sessions })
}
