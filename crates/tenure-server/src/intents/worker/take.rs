//! `POST /api/v3/worker/take`: this session with its leases.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::{SessionNow, TakeSession, Taken};
use tenure_core::kernel::{Fence, IntentAnswer, IntentCommand, SessionState, Span, Take};

use super::{Answer, FromWorker, WorkerRequest, answer, ask, remaining_ms, session_named};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::fields::Fields;
use crate::http::leases::nonce;
use crate::intents::view::now_at;

/// The most tuners: as many as the kernel looks at for one lease.
const MOST_TUNERS: u32 = 64;

/// Take a session with its leases.
///
/// If they cannot be had, the session is over, and the answer says why.
#[utoipa::path(
    post,
    path = "/api/v3/worker/take",
    tag = "worker",
    operation_id = "workerTake",
    request_body = TakeSession,
    responses((status = 200, description = "Where the session is, and what it holds", body = SessionNow)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "NOT_FOUND", "GUARD_LOST", "QUOTA_EXCEEDED", "HOLDER_TAKEN"])))
)]
pub(super) async fn ask_take(State(app): State<Arc<App>>, from: FromWorker<TakeSession>) -> Answer {
    answer(take(&app, &from.request).await)
}

impl WorkerRequest for TakeSession {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self {
            guard: fields.number("guard")?,
            session_id: fields.text("session_id")?,
            tuners: tuners(fields.number("tuners")?)?,
            ttl_ms: fields.number("ttlMs")?,
        })
    }
}

fn tuners(number: u64) -> Result<u32, Failure> {
    let wrong = || Failure::invalid("tuners", &format!("must be from 0 to {MOST_TUNERS}"));
    u32::try_from(number).ok().filter(|number| *number <= MOST_TUNERS).ok_or_else(wrong)
}

/// Takes a session.
pub(in crate::intents) async fn take(app: &App, request: &TakeSession) -> Result<SessionNow, Failure> {
    let take = Take {
        session: session_named(&request.session_id)?,
        guard: Fence(request.guard),
        slots: tuners(request.tuners.into())?,
        ttl: Span::from_millis(request.ttl_ms),
        nonces: [nonce()?, nonce()?],
    };
    match ask(app, IntentCommand::Take(take)).await? {
        IntentAnswer::Taken { leases, slot, until } => {
            let tag = app.registrar.read(tenure_core::kernel::State::tag);
            let taken = Taken {
                slot,
                leases: leases.iter().map(|fence| tag.lease_id(*fence)).collect(),
                fences: leases.iter().map(|fence| fence.0).collect(),
                remaining_ms: remaining_ms(app, until),
            };
            let state = SessionState::Starting.as_str().to_owned();
            Ok(SessionNow { state, reason: None, outcome: None, taken: Some(taken) })
        }
        answer => now_at(&answer),
    }
}
