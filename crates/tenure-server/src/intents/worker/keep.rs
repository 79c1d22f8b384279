//! `POST /api/v3/worker/keep`: the worker lives, and so do these sessions.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::{KeepSessions, KeptSession, KeptSessions};
use tenure_core::kernel::{Fence, IntentAnswer, IntentCommand, Kept, Span};

use super::{Answer, FromWorker, WorkerRequest, answer, ask, read_sessions, remaining_ms, sessions_named};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::fields::Fields;
use crate::http::refusal::unexpected;

/// Renew the guard, and the leases of these sessions.
///
/// A lease that is lost is never given back: its session is over.
#[utoipa::path(
    post,
    path = "/api/v3/worker/keep",
    tag = "worker",
    operation_id = "workerKeep",
    request_body = KeepSessions,
    responses((status = 200, description = "What became of them", body = KeptSessions)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "GUARD_LOST"])))
)]
pub(super) async fn ask_keep(State(app): State<Arc<App>>, from: FromWorker<KeepSessions>) -> Answer {
    answer(keep(&app, &from.request).await)
}

impl WorkerRequest for KeepSessions {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self {
            guard: fields.number("guard")?,
            ttl_ms: fields.number("ttlMs")?,
            sessions: read_sessions(fields)?,
        })
    }
}

/// Renews.
pub(in crate::intents) async fn keep(app: &App, request: &KeepSessions) -> Result<KeptSessions, Failure> {
    let (guard, ttl) = (Fence(request.guard), Span::from_millis(request.ttl_ms));
    let sessions = sessions_named(&request.sessions)?;
    let answer = ask(app, IntentCommand::Keep { guard, ttl, sessions }).await?;
    let IntentAnswer::Kept { until, sessions } = answer else { return Err(unexpected()) };
    let kept = request.sessions.iter().zip(sessions).map(|(id, kept)| {
        let (held, remaining_ms, state) = match kept {
            Kept::Until { until, state } => (true, remaining_ms(app, until), Some(state.as_str().to_owned())),
            Kept::Lost => (false, 0, None),
        };
        KeptSession { session_id: id.clone(), held, remaining_ms, state }
    });
    let sessions = kept.collect();
    Ok(KeptSessions { remaining_ms: remaining_ms(app, until), sessions })
}
