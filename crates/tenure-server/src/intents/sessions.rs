//! `GET /api/v3/sessions` and `GET /api/v3/sessions/{id}`: what became of intents, and waiting for the next change.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use tenure_api::{SessionView, Sessions};
use tenure_core::kernel::{self, Holder, Session, SessionState};

use super::changes::{Looked, wait};
use super::view::{anchor, view_of};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::fields::query;
use crate::http::refusal::no_such_session;

/// The longest wait, in milliseconds.
pub(super) const MOST_WAIT_MS: u64 = 60_000;
/// The most sessions in one answer.
const MOST: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AskedOne {
    wait_ms: Option<u64>,
    since: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedAll {
    state: Option<String>,
    limit: Option<usize>,
}

/// One session, now or after its next change.
#[utoipa::path(
    get,
    path = "/api/v3/sessions/{id}",
    tag = "intents",
    operation_id = "session",
    params(
        ("id" = String, Path, description = "The session, as `session_id` named it"),
        ("waitMs" = Option<u64>, Query, description = "How long to wait for a change, in milliseconds; without `since`, nobody waits for a session that runs or is over", maximum = 60_000),
        ("since" = Option<u64>, Query, description = "The `revision` that is known: wait for a later one"),
    ),
    responses((status = 200, description = "The session", body = SessionView)),
    extensions(("x-codes" = json!(["INVALID", "NOT_FOUND"])))
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, axum::extract::rejection::PathRejection>,
    uri: Uri,
) -> Result<Response, Failure> {
    let Path(id) = path.map_err(|_| no_such_session())?;
    let AskedOne { wait_ms, since } = query(&uri)?;
    let wait_ms = checked_wait(wait_ms)?;
    let mut first = None;
    let view = wait(&app, wait_ms, || {
        let (session, anchor) = app
            .registrar
            .read(|state| find(state, &caller, &id).map(|session| (session.clone(), anchor(state))))?;
        let is_settled = matches!(session.state, SessionState::Running | SessionState::Ended);
        // Without a revision that is known, whatever comes after what is seen first.
        let known = since.or(*first.get_or_insert((!is_settled).then_some(session.revision)));
        let is_enough = known.is_none_or(|known| session.revision > known);
        Ok(Looked { found: view_of(&session, anchor), is_enough, again_in: None })
    });
    Ok(json(StatusCode::OK, &view.await?))
}

/// The sessions that go on, and those that ended last; the newest first.
#[utoipa::path(
    get,
    path = "/api/v3/sessions",
    tag = "intents",
    operation_id = "sessions",
    params(
        ("state" = Option<String>, Query, description = "Only those that are there: `NEW`, `STARTING`, `RUNNING`, `STOPPING` or `ENDED`"),
        ("limit" = Option<usize>, Query, description = "So many at the most", minimum = 1, maximum = 1_000),
    ),
    responses((status = 200, description = "The sessions", body = Sessions)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Failure> {
    let asked: AskedAll = query(&uri)?;
    let limit = asked.limit.unwrap_or(MOST);
    if !(1..=MOST).contains(&limit) {
        return Err(Failure::invalid("limit", &format!("must be from 1 to {MOST}")));
    }
    let state = asked.state.as_deref().map(state_named).transpose()?;
    let (mut found, anchor) = app.registrar.read(|all| {
        let is_wanted = |session: &&Session| state.is_none_or(|state| state == session.state);
        let wanted = all.sessions().filter(is_wanted);
        let seen = wanted.filter(|session| may_see(&caller, session));
        (seen.cloned().collect::<Vec<_>>(), anchor(all))
    });
    found.sort_unstable_by_key(|session| std::cmp::Reverse((session.accepted_at, session.revision)));
    let sessions = found.iter().take(limit).map(|session| view_of(session, anchor)).collect();
    Ok(json(StatusCode::OK, &Sessions { sessions }))
}

/// The session that somebody named, if that one may act on what it shows.
pub(super) fn find<'a>(state: &'a kernel::State, caller: &Caller, id: &str) -> Result<&'a Session, Failure> {
    let id = Holder::parse(id).map_err(|_| no_such_session())?;
    let session = state.session(&id).ok_or_else(no_such_session)?;
    caller.require_resource(session.intent.target.resource().as_str())?;
    Ok(session)
}

fn may_see(caller: &Caller, session: &Session) -> bool {
    // Mostly a token is limited to nothing, and then no name has to be made.
    caller.resources.is_empty() || caller.may_see(session.intent.target.resource().as_str())
}

pub(super) fn checked_wait(wait_ms: Option<u64>) -> Result<u64, Failure> {
    let wait_ms = wait_ms.unwrap_or(0);
    if wait_ms <= MOST_WAIT_MS {
        return Ok(wait_ms);
    }
    Err(Failure::invalid("waitMs", &format!("must be from 0 to {MOST_WAIT_MS}")))
}

fn state_named(name: &str) -> Result<SessionState, Failure> {
    SessionState::parse(name).ok_or_else(|| {
        let names = SessionState::ALL.map(SessionState::as_str).join(", ");
        Failure::invalid("state", &format!("must be one of {names}"))
    })
}
