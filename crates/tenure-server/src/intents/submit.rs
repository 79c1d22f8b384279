//! Accepts and stops sessions.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{AcceptedIntent, Code, IntentRequest};
use tenure_core::kernel::{
    AcceptIntent, Command, CommandOutcome, Intent, IntentCommand, IntentOutcome, IntentSessionState,
};

use super::parse::ParsedIntent;
use super::sessions::find;
use super::view;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::{MAX_LARGE_BYTES, RequestBody};
use crate::http::response::{HttpError, answer_from_reply, json, no_such_session, unexpected};
use crate::leases::nonce;

/// Submit an intent.
///
/// A worker executes it; its session shows the progress. An intent equal to that of an active session returns
/// that session, or `LEASE_BUSY` if intents acquire leases on acceptance.
#[utoipa::path(
    post,
    path = "/api/v3/intents",
    tag = "intents",
    operation_id = "intend",
    request_body = tenure_api::IntentRequest,
    responses((status = 202, description = "Intent was accepted", body = AcceptedIntent)),
    extensions(("x-codes" = json!(["NOT_FOUND", "LEASE_BUSY", "TOO_MANY_SESSIONS"])))
)]
pub(super) async fn submit_intent(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: RequestBody<IntentRequest, MAX_LARGE_BYTES>,
) -> Result<Response, HttpError> {
    let accepted = match ParsedIntent::parse(body.request)? {
        ParsedIntent::Start(intent) => accept(&app, &caller, intent).await?,
        ParsedIntent::Stop(session) => stop_one(&app, &caller, &session).await?,
    };
    Ok(json(StatusCode::ACCEPTED, &accepted))
}

async fn accept(app: &App, caller: &Caller, intent: Intent) -> Result<AcceptedIntent, HttpError> {
    caller.require_resource(intent.target.resource().as_str())?;
    let (key, previous_key) = app.intents.keys.of(&intent);
    let accept = AcceptIntent {
        session: view::new_session_id()?,
        intent,
        key,
        previous_key,
        principal: caller.principal.clone(),
        wait_timeout: app.intents.patience(),
        lease: app.intents.lease_at_once().map(|ttl| Ok::<_, HttpError>((ttl, nonce()?))).transpose()?,
    };
    let command = Command::Intent(Box::new(IntentCommand::Accept(accept)));
    let response = app.registrar.submit(command).await;
    let (answer, _) =
        answer_from_reply(response.reply, || app.registrar.now()).map_err(rephrase_for_intents)?;
    let CommandOutcome::Intent(answer) = answer else { return Err(unexpected()) };
    let IntentOutcome::Accepted { session, is_new } = *answer else { return Err(unexpected()) };
    app.registrar.read(|state| {
        let session = state.intent_session(&session).ok_or_else(unexpected)?;
        // A worker may have been quicker than this answer; the one that is told first is that it began.
        let (now, end) = if is_new { (IntentSessionState::New, None) } else { (session.state, session.end) };
        Ok(view::accepted(session, now, end))
    })
}

/// What is said about leases, as those hear it who asked for none.
fn rephrase_for_intents(failure: HttpError) -> HttpError {
    let mut problem = *failure.0;
    let replace_code = |problem: &mut tenure_api::Problem, code, detail: String| {
        let own = tenure_api::Problem::new(code, detail);
        (problem.r#type, problem.title) = (own.r#type, own.title);
        (problem.status, problem.code, problem.detail) = (own.status, own.code, own.detail);
    };
    match problem.code {
        Code::Held => {
            let holder = problem.holder.clone().unwrap_or_default();
            let detail = format!("{holder} has it; no session was made: ask again when that is over");
            replace_code(&mut problem, Code::LeaseBusy, detail);
        }
        Code::OutcomeUnknown => {
            problem.detail = "the disk failed while this was written; send the same intent again when the server is back: \
                              if it became a session, that is the answer"
                .to_owned();
        }
        _ => {}
    }
    HttpError(Box::new(problem))
}

/// Stop an intent session.
///
/// A session without a worker ends at once; otherwise it is `STOPPING` until its worker ends it. Stopping an
/// ended session changes nothing.
#[utoipa::path(
    delete,
    path = "/api/v3/sessions/{id}",
    tag = "intents",
    operation_id = "stopSession",
    params(("id" = String, Path, description = "Session id, as in `session_id`")),
    responses((status = 202, description = "State of the session", body = AcceptedIntent)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn stop(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, axum::extract::rejection::PathRejection>,
) -> Result<Response, HttpError> {
    let Path(id) = path.map_err(|_| no_such_session())?;
    Ok(json(StatusCode::ACCEPTED, &stop_one(&app, &caller, &id).await?))
}

/// Asks for the end of a session.
pub(super) async fn stop_one(app: &App, caller: &Caller, id: &str) -> Result<AcceptedIntent, HttpError> {
    let session = app.registrar.read(|state| find(state, caller, id).cloned())?;
    let stop = IntentCommand::Stop { session: session.id.clone(), by: caller.principal.clone() };
    let response = app.registrar.submit(Command::Intent(Box::new(stop))).await;
    let (answer, _) = answer_from_reply(response.reply, || app.registrar.now())?;
    let CommandOutcome::Intent(answer) = answer else { return Err(unexpected()) };
    let IntentOutcome::Current { state, end } = *answer else { return Err(unexpected()) };
    Ok(view::accepted(&session, state, end))
}
