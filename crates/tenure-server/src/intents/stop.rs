//! Accepts and stops sessions.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Code, IntentAccepted};
use tenure_core::kernel::{Accept, Answer, Command, Intent, IntentAnswer, IntentCommand, SessionState};

use super::read::Wanted;
use super::sessions::find;
use super::view;
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::LargeJsonBody;
use crate::http::leases::nonce;
use crate::http::refusal::{answered, no_such_session, unexpected};

/// Say what is wanted.
///
/// It is accepted, not carried out: a worker does that, and the session says how it goes. Whoever wants the same as
/// somebody before gets the same session.
#[utoipa::path(
    post,
    path = "/api/v3/intents",
    tag = "intents",
    operation_id = "intend",
    request_body = tenure_api::IntentRequest,
    responses((status = 202, description = "The session that it is", body = IntentAccepted)),
    extensions(("x-codes" = json!(["NOT_FOUND", "LEASE_BUSY", "TOO_MANY_SESSIONS"])))
)]
pub(super) async fn intend(
    State(app): State<Arc<App>>,
    caller: Caller,
    LargeJsonBody(fields): LargeJsonBody,
) -> Result<Response, Failure> {
    let accepted = match Wanted::read(fields)? {
        Wanted::Start(intent) => accept(&app, &caller, intent).await?,
        Wanted::Stop(session) => stop_one(&app, &caller, &session).await?,
    };
    Ok(json(StatusCode::ACCEPTED, &accepted))
}

async fn accept(app: &App, caller: &Caller, intent: Intent) -> Result<IntentAccepted, Failure> {
    caller.require_resource(intent.target.resource().as_str())?;
    let (key, previous_key) = app.intents.keys.of(&intent);
    let accept = Accept {
        session: view::session()?,
        intent,
        key,
        previous_key,
        principal: caller.principal.clone(),
        patience: app.intents.patience(),
        lease: app.intents.lease_at_once().map(|ttl| Ok::<_, Failure>((ttl, nonce()?))).transpose()?,
    };
    let command = Command::Intent(Box::new(IntentCommand::Accept(accept)));
    let response = app.registrar.ask(command).await;
    let (answer, _) = answered(response.reply, || app.registrar.now()).map_err(in_words_of_intents)?;
    let Answer::Intent(answer) = answer else { return Err(unexpected()) };
    let IntentAnswer::Accepted { session, is_new } = *answer else { return Err(unexpected()) };
    app.registrar.read(|state| {
        let session = state.session(&session).ok_or_else(unexpected)?;
        // A worker may have been quicker than this answer; the one that is told first is that it began.
        let (now, end) = if is_new { (SessionState::New, None) } else { (session.state, session.end) };
        Ok(view::accepted(session, now, end))
    })
}

/// What is said about leases, as those hear it who asked for none.
fn in_words_of_intents(failure: Failure) -> Failure {
    let mut problem = *failure.0;
    let in_other_words = |problem: &mut tenure_api::Problem, code, detail: String| {
        let own = tenure_api::Problem::new(code, detail);
        (problem.r#type, problem.title) = (own.r#type, own.title);
        (problem.status, problem.code, problem.detail) = (own.status, own.code, own.detail);
    };
    match problem.code {
        Code::Held => {
            let holder = problem.holder.clone().unwrap_or_default();
            let detail = format!("{holder} has it; no session was made: ask again when that is over");
            in_other_words(&mut problem, Code::LeaseBusy, detail);
        }
        Code::OutcomeUnknown => {
            problem.detail = "the disk failed while this was written; send the same intent again when the server is back: \
                              if it became a session, that is the answer"
                .to_owned();
        }
        _ => {}
    }
    Failure(Box::new(problem))
}

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
