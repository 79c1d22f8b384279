//! `POST /api/v3/worker/running`: its pipeline runs.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::{SessionNow, SessionRuns};
use tenure_core::kernel::{Fence, IntentCommand};

use super::{Answer, FromWorker, WorkerRequest, answer, ask, session_named};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::fields::Fields;
use crate::intents::view::now_at;

/// Say that a session's pipeline runs.
///
/// If somebody asked for its end meanwhile, or it lost a lease, it does not run: the answer says where it is.
#[utoipa::path(
    post,
    path = "/api/v3/worker/running",
    tag = "worker",
    operation_id = "workerRunning",
    request_body = SessionRuns,
    responses((status = 200, description = "Where the session is", body = SessionNow)),
    extensions(("x-codes" = json!(["NOT_FOUND", "GUARD_LOST"])))
)]
pub(super) async fn ask_running(State(app): State<Arc<App>>, from: FromWorker<SessionRuns>) -> Answer {
    answer(running(&app, &from.request).await)
}

impl WorkerRequest for SessionRuns {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self {
            guard: fields.number("guard")?,
            session_id: fields.text("session_id")?,
            process: fields.text("process")?,
        })
    }
}

/// Notes that it runs.
pub(in crate::intents) async fn running(app: &App, request: &SessionRuns) -> Result<SessionNow, Failure> {
    let session = session_named(&request.session_id)?;
    let (guard, process) = (Fence(request.guard), request.process.as_str().into());
    now_at(&ask(app, IntentCommand::Run { session, guard, process }).await?)
}
