//! `DELETE /api/v3/sessions/{id}`, and what `stream.stop` does.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::IntentAccepted;
use tenure_core::kernel::{Answer, Command, IntentAnswer, IntentCommand};

use super::sessions::find;
use super::view;
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::refusal::{answered, no_such_session, unexpected};

/// End a session.
///
/// One that no worker has is over at once; else its worker ends it, and the answer says that it stops. Ending what is over
/// changes nothing.
#[utoipa::path(
    delete,
    path = "/api/v3/sessions/{id}",
    tag = "intents",
    operation_id = "stopSession",
    params(("id" = String, Path, description = "The session, as `session_id` named it")),
    responses((status = 202, description = "Where the session is", body = IntentAccepted)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn stop(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, axum::extract::rejection::PathRejection>,
) -> Result<Response, Failure> {
    let Path(id) = path.map_err(|_| no_such_session())?;
    Ok(json(StatusCode::ACCEPTED, &stop_one(&app, &caller, &id).await?))
}

/// Asks for the end of a session.
pub(super) async fn stop_one(app: &App, caller: &Caller, id: &str) -> Result<IntentAccepted, Failure> {
    let session = app.registrar.read(|state| find(state, caller, id).cloned())?;
    let stop = IntentCommand::Stop { session: session.id.clone(), by: caller.principal.clone() };
    let response = app.registrar.ask(Command::Intent(Box::new(stop))).await;
    let (answer, _) = answered(response.reply, || app.registrar.now())?;
    let Answer::Intent(answer) = answer else { return Err(unexpected()) };
    let IntentAnswer::Now { state, end } = *answer else { return Err(unexpected()) };
    Ok(view::accepted(&session, state, end))
}
