//! Requests of the worker. A worker in this process sends the same requests through `WorkerApi`.

mod changes;
mod handlers;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_api::{
    IntentSessionChanges, IntentSessionChangesRequest, IntentSessionFinishRequest,
    IntentSessionRenewalRequest, IntentSessionRenewals, IntentSessionRunningReport, IntentSessionStatus,
    IntentSessionTakeRequest, IntentSessionWipeRequest, LeaderLockGrant, LeaderLockReleaseRequest,
    LeaderLockRequest, Problem, WipeResult,
};
use tenure_core::kernel;
use tenure_core::kernel::{
    Command, Fence, Holder, IntentCommand, IntentOutcome, LEADER_LOCK, Tick, orchestrator_principal,
};
use tenure_core::rules::{is_expired, remaining};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use self::changes::changes;
pub(super) use self::handlers::{
    acquire_leader_lock, finish, release_leader_lock, renew_leases, report_running, take, wipe,
};
use super::worker;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::RequestBody;
use crate::http::response::{HttpError, answer_from_reply, json, leader_lock_lost, unexpected};

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

/// A request, and the caller that may be a worker.
struct AuthenticatedWorkerRequest<T> {
    caller: Caller,
    request: T,
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for AuthenticatedWorkerRequest<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        let (mut parts, body) = request.into_parts();
        let Ok(caller) = Caller::from_request_parts(&mut parts, state).await;
        // A token that is limited to some resources makes a worker only if the leader lock is among them.
        caller.require_resource(LEADER_LOCK)?;
        let body: RequestBody<T> = RequestBody::from_request(Request::from_parts(parts, body), state).await?;
        // The token may have ended while the body came in.
        caller.require_resource(LEADER_LOCK)?;
        Ok(Self { caller, request: body.request })
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

const MAX_BYTES: usize = 128;

/// The name of a worker, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WorkerId {
    holder: Holder,
    place: (String, String),
}

impl WorkerId {
    fn parse(field: &'static str, text: &str) -> Result<Self, HttpError> {
        let wrong = || HttpError::invalid(field, "must be `worker:BOOT:NAMESPACE:PID:START`");
        let parts: Vec<_> = text.split(':').collect();
        let ["worker", boot, namespace, process, start] = parts[..] else { return Err(wrong()) };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_sound = !boot.is_empty()
            && boot.bytes().all(is_word)
            && [namespace, process, start].into_iter().all(is_number)
            && text.len() <= MAX_BYTES;
        if !is_sound {
            return Err(wrong());
        }
        let place = (boot.to_owned(), namespace.to_owned());
        Ok(Self { holder: Holder::parse(text)?, place })
    }

    /// Whether both run on the same boot of one machine, and see the same processes.
    fn shares_namespace(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

/// Where a worker in this process asks. It can be cloned.
#[derive(Clone)]
pub struct WorkerApi {
    app: Arc<App>,
}

/// What the worker asked for, or why it did not get it.
type WorkerAnswer<T> = Result<T, Box<Problem>>;

impl WorkerApi {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { app }
    }

    /// Be the one worker, or stay it.
    pub async fn acquire_leader_lock(&self, request: &LeaderLockRequest) -> WorkerAnswer<LeaderLockGrant> {
        worker::acquire_leader_lock(&self.app, &orchestrator_principal(), request).await.map_err(problem)
    }

    /// Which sessions changed, waiting for one if the request says so.
    pub async fn changed_sessions(
        &self,
        request: &IntentSessionChangesRequest,
    ) -> WorkerAnswer<IntentSessionChanges> {
        worker::changes(&self.app, request).await.map_err(problem)
    }

    pub async fn take_session(
        &self,
        request: &IntentSessionTakeRequest,
    ) -> WorkerAnswer<IntentSessionStatus> {
        worker::take(&self.app, request).await.map_err(problem)
    }

    pub async fn report_running(
        &self,
        request: &IntentSessionRunningReport,
    ) -> WorkerAnswer<IntentSessionStatus> {
        worker::report_running(&self.app, request).await.map_err(problem)
    }

    pub async fn finish_session(
        &self,
        request: &IntentSessionFinishRequest,
    ) -> WorkerAnswer<IntentSessionStatus> {
        worker::finish(&self.app, request).await.map_err(problem)
    }

    /// The worker lives, and so do these sessions.
    pub async fn renew_leases(
        &self,
        request: &IntentSessionRenewalRequest,
    ) -> WorkerAnswer<IntentSessionRenewals> {
        worker::renew_leases(&self.app, request).await.map_err(problem)
    }

    /// The processes of these sessions were seen gone.
    pub async fn wipe_sessions(&self, request: &IntentSessionWipeRequest) -> WorkerAnswer<WipeResult> {
        worker::wipe(&self.app, request).await.map_err(problem)
    }

    pub async fn release_leader_lock(&self, request: &LeaderLockReleaseRequest) -> WorkerAnswer<()> {
        worker::release_leader_lock(&self.app, request).await.map(drop).map_err(problem)
    }
}

fn problem(failure: HttpError) -> Box<Problem> {
    failure.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_id_is_parsed_strictly() {
        let id = |text| WorkerId::parse("worker", text);
        let one = id("worker:0b2a-4f:4026531836:17:99").unwrap_or_else(|_| panic!());
        assert!(one.shares_namespace(&id("worker:0b2a-4f:4026531836:18:1").unwrap_or_else(|_| panic!())));
        assert!(!one.shares_namespace(&id("worker:0b2a-4e:4026531836:17:99").unwrap_or_else(|_| panic!())));
        assert!(!one.shares_namespace(&id("worker:0b2a-4f:4026531837:17:99").unwrap_or_else(|_| panic!())));
        for text in [
            "",
            "worker",
            "worker:a:1:2",
            "worker:a:1:2:3:4",
            "worker::1:2:3",
            "worker:a::2:3",
            "worker:a:x:2:3",
            "worker:a:1:-2:3",
            "worker:a b:1:2:3",
            "ci:a:1:2:3",
            "worker:a\n:1:2:3",
        ] {
            assert!(id(text).is_err(), "{text}");
        }
        assert!(id(&format!("worker:{}:1:2:3", "a".repeat(128))).is_err());
    }
}
