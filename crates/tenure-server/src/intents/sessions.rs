//! `GET /api/v3/sessions` and `GET /api/v3/sessions/{id}`: what became of intents, and waiting for the next change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use tenure_api::{IntentSessionList, IntentSessionView};
use tenure_core::kernel;
use tenure_core::kernel::{
    Event, Fence, Holder, IntentSession, IntentSessionState, LEADER_LOCK, leader_lock_resource,
};
use tenure_registrar::runtime::{AppliedEvent, Observer, StateView};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::view::{clock_anchor, view_of};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::parse_query;
use crate::http::response::{HttpError, json, no_such_session};

/// The longest wait, in milliseconds.
pub(super) const MAX_WAIT_MS: u64 = 60_000;
/// The most sessions in one answer.
const MAX_LIMIT: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SessionQuery {
    wait_ms: Option<u64>,
    since: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionsQuery {
    state: Option<String>,
    limit: Option<usize>,
}

/// Get an intent session, now or after a change.
#[utoipa::path(
    get,
    path = "/api/v3/sessions/{id}",
    tag = "intents",
    operation_id = "session",
    params(
        ("id" = String, Path, description = "Session id, as in `session_id`"),
        ("waitMs" = Option<u64>, Query, description = "Maximum wait for a change, 0 to 60000 ms, default 0. Without `since`, a running or ended session is returned at once", maximum = 60_000),
        ("since" = Option<u64>, Query, description = "Last known `revision`; waits for a later one"),
    ),
    responses((status = 200, description = "State of the session", body = IntentSessionView)),
    extensions(("x-codes" = json!(["INVALID", "NOT_FOUND"])))
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, axum::extract::rejection::PathRejection>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let Path(id) = path.map_err(|_| no_such_session())?;
    let SessionQuery { wait_ms, since } = parse_query(&uri)?;
    let wait_ms = validate_wait(wait_ms)?;
    let mut first = None;
    let view = long_poll(&app, wait_ms, || {
        let (session, anchor) = app
            .registrar
            .read(|state| find(state, &caller, &id).map(|session| (session.clone(), clock_anchor(state))))?;
        let is_settled = matches!(session.state, IntentSessionState::Running | IntentSessionState::Ended);
        // Without a revision that is known, whatever comes after what is seen first.
        let known = since.or(*first.get_or_insert((!is_settled).then_some(session.revision)));
        let is_enough = known.is_none_or(|known| session.revision > known);
        Ok(PollResult { found: view_of(&session, anchor), is_enough, again_in: None })
    });
    Ok(json(StatusCode::OK, &view.await?))
}

/// List active and recently ended intent sessions, newest first.
#[utoipa::path(
    get,
    path = "/api/v3/sessions",
    tag = "intents",
    operation_id = "sessions",
    params(
        ("state" = Option<String>, Query, description = "Session state: `NEW`, `STARTING`, `RUNNING`, `STOPPING` or `ENDED`"),
        ("limit" = Option<usize>, Query, description = "Maximum number of sessions, 1 to 1000, default 1000", minimum = 1, maximum = 1_000),
    ),
    responses((status = 200, description = "List of sessions", body = IntentSessionList)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, HttpError> {
    let query: SessionsQuery = parse_query(&uri)?;
    let limit = query.limit.unwrap_or(MAX_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(HttpError::invalid("limit", &format!("must be from 1 to {MAX_LIMIT}")));
    }
    let state = query.state.as_deref().map(state_named).transpose()?;
    let (mut found, anchor) = app.registrar.read(|all| {
        let is_selected = |session: &&IntentSession| state.is_none_or(|state| state == session.state);
        let selected = all.intent_sessions().filter(is_selected);
        let seen = selected.filter(|session| can_see(&caller, session));
        (seen.cloned().collect::<Vec<_>>(), clock_anchor(all))
    });
    found.sort_unstable_by_key(|session| std::cmp::Reverse((session.accepted_at, session.revision)));
    let sessions = found.iter().take(limit).map(|session| view_of(session, anchor)).collect();
    Ok(json(StatusCode::OK, &IntentSessionList { sessions }))
}

/// The session that somebody named, if that one may act on what it shows.
pub(super) fn find<'a>(
    state: &'a kernel::KernelState,
    caller: &Caller,
    id: &str,
) -> Result<&'a IntentSession, HttpError> {
    let id = Holder::parse(id).map_err(|_| no_such_session())?;
    let session = state.intent_session(&id).ok_or_else(no_such_session)?;
    caller.require_resource(session.intent.target.resource().as_str())?;
    Ok(session)
}

fn can_see(caller: &Caller, session: &IntentSession) -> bool {
    // Mostly a token is limited to nothing, and then no name has to be made.
    caller.resources.is_empty() || caller.can_see(session.intent.target.resource().as_str())
}

pub(super) fn validate_wait(wait_ms: Option<u64>) -> Result<u64, HttpError> {
    let wait_ms = wait_ms.unwrap_or(0);
    if wait_ms <= MAX_WAIT_MS {
        return Ok(wait_ms);
    }
    Err(HttpError::invalid("waitMs", &format!("must be from 0 to {MAX_WAIT_MS}")))
}

fn state_named(name: &str) -> Result<IntentSessionState, HttpError> {
    IntentSessionState::parse(name).ok_or_else(|| {
        let names = IntentSessionState::ALL.map(IntentSessionState::as_str).join(", ");
        HttpError::invalid("state", &format!("must be one of {names}"))
    })
}

/// Observes the feed for the API of intents.
pub(super) struct IntentSessionWaker {
    signal: watch::Sender<u64>,
    /// Whether what is being told will change something for who waits.
    is_due: AtomicBool,
    /// The guard's fence; 0 where nobody has had it.
    leader_fence: AtomicU64,
}

pub(super) struct PollResult<T> {
    pub(super) found: T,
    /// Whether that is what was waited for.
    pub(super) is_enough: bool,
    /// When to look again though nothing was told.
    pub(super) again_in: Option<Duration>,
}

impl IntentSessionWaker {
    pub(super) fn new(view: &StateView) -> Self {
        let held = view.read(|state| {
            state.leases_on_resource(&leader_lock_resource()).next().map(|lease| lease.fence.0)
        });
        Self {
            signal: watch::Sender::new(0),
            is_due: AtomicBool::new(false),
            leader_fence: AtomicU64::new(held.unwrap_or(0)),
        }
    }

    fn is_leader_fence(&self, lease: Fence) -> bool {
        self.leader_fence.load(Ordering::Relaxed) == lease.0
    }
}

impl Observer for IntentSessionWaker {
    fn event_applied(&self, applied: AppliedEvent<'_>) {
        match applied.event {
            Event::Intent(_) => self.is_due.store(true, Ordering::Relaxed),
            Event::Issued(issued) if issued.resource.as_str() == LEADER_LOCK => {
                self.leader_fence.store(issued.fence.0, Ordering::Relaxed);
            }
            Event::Released { lease, .. } | Event::Expired { lease, .. } | Event::Revoked { lease, .. }
                if self.is_leader_fence(*lease) =>
            {
                self.is_due.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    fn batch_published(&self, _: Duration) {
        // By now the view has it: whoever looks sees it.
        if self.is_due.swap(false, Ordering::Relaxed) {
            self.signal.send_modify(|times| *times += 1);
        }
    }
}

/// Looks until it is enough, the time is up, or the server stops; each time something was told that may matter.
pub(super) async fn long_poll<T>(
    app: &App,
    wait_ms: u64,
    mut look: impl FnMut() -> Result<PollResult<T>, HttpError>,
) -> Result<T, HttpError> {
    let deadline = Instant::now() + Duration::from_millis(wait_ms);
    let mut signal = app.intents.session_waker.signal.subscribe();
    let mut is_last = wait_ms == 0;
    loop {
        // Marked as seen before looking: what comes in between wakes it again.
        signal.borrow_and_update();
        let PollResult { found, is_enough, again_in } = look()?;
        if is_enough || is_last {
            return Ok(found);
        }
        let again = again_in.map(|time| Instant::now() + time);
        tokio::select! {
            changed = signal.changed() => is_last = changed.is_err(),
            () = sleep_until(again.map_or(deadline, |again| again.min(deadline))) => {}
            () = app.wait_for_stop() => is_last = true,
            () = app.registrar.wait_until_ended() => is_last = true,
        }
        is_last |= Instant::now() >= deadline;
    }
}
