//! `POST /api/v3/worker/leave`: the worker ends, in good order.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::LeaveGuard;
use tenure_core::kernel::{self, Claim, Command, Fence, GUARD, Refusal, orchestrator};
use tenure_core::lease::ReleaseReason;
use tenure_registrar::Reply;

use super::{Answer, FromWorker, WorkerRequest, answer};
use crate::app::App;
use crate::http::answer::Failure;
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
pub(super) async fn ask_leave(State(app): State<Arc<App>>, from: FromWorker<LeaveGuard>) -> Answer {
    answer(leave(&app, &from.request).await)
}

impl WorkerRequest for LeaveGuard {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self { guard: fields.number("guard")? })
    }
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
            answer: kernel::Answer::Released { .. } | kernel::Answer::Refused(Refusal::Over { .. }),
            ..
        } => done(),
        reply => Err(failure_of(reply, || app.registrar.now())),
    }
}
