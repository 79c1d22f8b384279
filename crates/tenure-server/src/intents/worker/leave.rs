//! `POST /api/v3/worker/leave`: the worker ends, in good order.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::LeaveGuard;
use tenure_core::kernel::{Answer, Claim, Command, Fence, GUARD, Refusal, orchestrator};
use tenure_core::lease::ReleaseReason;
use tenure_registrar::Reply;

use super::must_be_worker;
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::refusal::{failure_of, guard_lost};

/// Give the guard back.
///
/// Giving back what is over already is a success.
#[utoipa::path(
    post,
    path = "/api/v3/worker/leave",
    tag = "worker",
    operation_id = "workerLeave",
    request_body = LeaveGuard,
    responses((status = 200, description = "It is free", body = Object)),
    extensions(("x-codes" = json!(["GUARD_LOST"])))
)]
pub(super) async fn ask_leave(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, Failure> {
    must_be_worker(&caller)?;
    let request = read(body.fields)?;
    Ok(json(StatusCode::OK, &leave(&app, &request).await?))
}

fn read(mut fields: Fields) -> Result<LeaveGuard, Failure> {
    let asked = LeaveGuard { guard: fields.number("guard")? };
    fields.finish()?;
    Ok(asked)
}

/// Gives the guard back.
pub(in crate::intents) async fn leave(app: &App, request: &LeaveGuard) -> Result<serde_json::Value, Failure> {
    let lease = Fence(request.guard);
    let done = || Ok(serde_json::json!({}));
    let found = app.registrar.read(|state| {
        let live = state.lease(lease).filter(|lease| lease.resource.as_str() == GUARD);
        let is_over = || state.ended(lease).is_some_and(|lease| lease.resource.as_str() == GUARD);
        live.map(|lease| Some(lease.holder.clone())).or_else(|| is_over().then_some(None))
    });
    let Some(holder) = found.ok_or_else(guard_lost)? else { return done() };
    let claim = Claim::Holder { holder, principal: orchestrator() };
    let reason = ReleaseReason::Voluntary;
    let response = app.registrar.ask(Command::Release { lease, claim, reason }).await;
    match response.reply {
        Reply::Answered {
            answer: Answer::Released { .. } | Answer::Refused(Refusal::Over { .. }), ..
        } => done(),
        reply => Err(failure_of(reply, || app.registrar.now())),
    }
}
