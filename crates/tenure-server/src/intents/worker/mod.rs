//! Requests of the worker. A worker in this process sends the same requests through the office.

mod changes;
mod handlers;
mod id;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tenure_core::kernel::{self, Command, Fence, GUARD, Holder, IntentAnswer, IntentCommand, Tick};
use tenure_core::rules::time::{is_over, remaining};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use self::changes::changes;
pub(super) use self::handlers::{finish, guard, keep, leave, running, take, wipe};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::refusal::{answered, guard_lost, unexpected};

/// The most sessions that are named in one request.
const MOST_SESSIONS: usize = 1_024;

/// The routes of the worker.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(handlers::ask_guard))
        .routes(routes!(changes::ask_changes))
        .routes(routes!(handlers::ask_take))
        .routes(routes!(handlers::ask_running))
        .routes(routes!(handlers::ask_finish))
        .routes(routes!(handlers::ask_keep))
        .routes(routes!(handlers::ask_wipe))
        .routes(routes!(handlers::ask_leave))
}

/// A request of the worker, read from its body.
trait WorkerRequest: Sized {
    fn read(fields: &mut Fields) -> Result<Self, Failure>;
}

/// A request, and the caller that may be a worker.
struct FromWorker<T> {
    caller: Caller,
    request: T,
}

impl<S: Send + Sync, T: WorkerRequest> FromRequest<S> for FromWorker<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        let Ok(caller) = Caller::from_request_parts(&mut parts, state).await;
        let JsonBody { mut fields, .. } =
            JsonBody::from_request(Request::from_parts(parts, body), state).await?;
        // A token that is limited to some resources makes a worker only if the guard is among them.
        caller.require_resource(GUARD)?;
        let request = T::read(&mut fields)?;
        fields.finish()?;
        Ok(Self { caller, request })
    }
}

type Answer = Result<Response, Failure>;

fn answer(result: Result<impl Serialize, Failure>) -> Answer {
    Ok(json(StatusCode::OK, &result?))
}

/// Asks the kernel something about sessions.
async fn ask(app: &App, command: IntentCommand) -> Result<IntentAnswer, Failure> {
    let response = app.registrar.ask(Command::Intent(Box::new(command))).await;
    match answered(response.reply, || app.registrar.now())? {
        (kernel::Answer::Intent(answer), _) => Ok(*answer),
        _ => Err(unexpected()),
    }
}

/// How long the guard with this fence still lives. Refuses one that does not.
fn guard_lives(state: &kernel::State, guard: Fence, now: Tick) -> Result<Duration, Failure> {
    let lease = state.lease(guard).filter(|lease| lease.resource.as_str() == GUARD);
    let living = lease.filter(|lease| !is_over(now.0, lease.terms.expires_at.0)).ok_or_else(guard_lost)?;
    Ok(Duration::from_micros(remaining(now.0, living.terms.expires_at.0)))
}

/// How long something still lasts, at this moment.
fn remaining_ms(app: &App, until: Tick) -> u64 {
    remaining(app.registrar.now().0, until.0) / 1_000
}

fn session_named(id: &str) -> Result<Holder, Failure> {
    Holder::parse(id).map_err(|invalid| Failure::invalid("session_id", &invalid.reason))
}

fn sessions_named(ids: &[String]) -> Result<Vec<Holder>, Failure> {
    if ids.len() > MOST_SESSIONS {
        return Err(Failure::invalid("sessions", &format!("has more than {MOST_SESSIONS} sessions")));
    }
    ids.iter().map(|id| session_named(id)).collect()
}

/// The field `sessions`, which must be there.
fn read_sessions(fields: &mut Fields) -> Result<Vec<String>, Failure> {
    fields.optional_list("sessions")?.ok_or_else(|| Failure::invalid("sessions", "is missing"))
}
