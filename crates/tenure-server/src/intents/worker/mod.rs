//! Requests of the worker. A worker in this process sends the same requests through the office.

mod changes;
mod handlers;
mod worker_id;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tenure_core::kernel::{self, Command, Fence, Holder, IntentCommand, IntentOutcome, LEADER_LOCK, Tick};
use tenure_core::rules::time::{is_expired, remaining};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use self::changes::changes;
pub(super) use self::handlers::{
    acquire_leader_lock, finish, release_leader_lock, renew_leases, report_running, take, wipe,
};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::reply_error::{answer_from_reply, leader_lock_lost, unexpected};
use crate::http::response::{HttpError, json};

/// The most sessions that are named in one request.
const MAX_SESSIONS: usize = 1_024;

/// The routes of the worker.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(handlers::post_leader_lock))
        .routes(routes!(changes::post_changes))
        .routes(routes!(handlers::post_take))
        .routes(routes!(handlers::post_running))
        .routes(routes!(handlers::post_finish))
        .routes(routes!(handlers::post_renew_leases))
        .routes(routes!(handlers::post_wipe))
        .routes(routes!(handlers::post_leader_lock_release))
}

/// A request of the worker, read from its body.
trait WorkerRequest: Sized {
    fn read(fields: &mut Fields) -> Result<Self, HttpError>;
}

/// A request, and the caller that may be a worker.
struct AuthenticatedWorkerRequest<T> {
    caller: Caller,
    request: T,
}

impl<S: Send + Sync, T: WorkerRequest> FromRequest<S> for AuthenticatedWorkerRequest<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        let (mut parts, body) = request.into_parts();
        let Ok(caller) = Caller::from_request_parts(&mut parts, state).await;
        let JsonBody { mut fields, .. } =
            JsonBody::from_request(Request::from_parts(parts, body), state).await?;
        // A token that is limited to some resources makes a worker only if the guard is among them.
        caller.require_resource(LEADER_LOCK)?;
        let request = T::read(&mut fields)?;
        fields.reject_remaining()?;
        Ok(Self { caller, request })
    }
}

type Answer = Result<Response, HttpError>;

fn answer(result: Result<impl Serialize, HttpError>) -> Answer {
    Ok(json(StatusCode::OK, &result?))
}

/// Asks the kernel something about sessions.
async fn submit(app: &App, command: IntentCommand) -> Result<IntentOutcome, HttpError> {
    let response = app.registrar.submit(Command::Intent(Box::new(command))).await;
    match answer_from_reply(response.reply, || app.registrar.now())? {
        (kernel::CommandOutcome::Intent(answer), _) => Ok(*answer),
        _ => Err(unexpected()),
    }
}

/// How long the guard with this fence still lives. Refuses one that does not.
fn require_leader(state: &kernel::KernelState, guard: Fence, now: Tick) -> Result<Duration, HttpError> {
    let lease = state.lease(guard).filter(|lease| lease.resource.as_str() == LEADER_LOCK);
    let living =
        lease.filter(|lease| !is_expired(now.0, lease.terms.expires_at.0)).ok_or_else(leader_lock_lost)?;
    Ok(Duration::from_micros(remaining(now.0, living.terms.expires_at.0)))
}

/// How long something still lasts, at this moment.
fn remaining_ms(app: &App, until: Tick) -> u64 {
    remaining(app.registrar.now().0, until.0) / 1_000
}

fn session_named(id: &str) -> Result<Holder, HttpError> {
    Holder::parse(id).map_err(|invalid| HttpError::invalid("session_id", &invalid.reason))
}

fn sessions_named(ids: &[String]) -> Result<Vec<Holder>, HttpError> {
    if ids.len() > MAX_SESSIONS {
        return Err(HttpError::invalid("sessions", &format!("has more than {MAX_SESSIONS} sessions")));
    }
    ids.iter().map(|id| session_named(id)).collect()
}

/// The field `sessions`, which must be there.
fn read_sessions(fields: &mut Fields) -> Result<Vec<String>, HttpError> {
    fields.optional_list("sessions")?.ok_or_else(|| HttpError::invalid("sessions", "is missing"))
}
