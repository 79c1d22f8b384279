//! `POST /api/v3/worker/changes`: which sessions changed.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::{AskChanges, Changes};
use tenure_core::kernel::{self, Fence, Session, SessionState};

use super::{Answer, FromWorker, WorkerRequest, answer, guard_lives};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::fields::Fields;
use crate::intents::changes::{Looked, wait};
use crate::intents::sessions::checked_wait;
use crate::intents::view::{anchor, view_of};

/// About how many bytes of sessions are in one answer. Callers make sessions long, and a worker that could not read an
/// answer would take none of them.
const MOST_BYTES: usize = 1 << 20;

/// Which sessions changed, waiting for one if there is none.
#[utoipa::path(
    post,
    path = "/api/v3/worker/changes",
    tag = "worker",
    operation_id = "workerChanges",
    request_body = AskChanges,
    responses((status = 200, description = "Those sessions", body = Changes)),
    extensions(("x-codes" = json!(["GUARD_LOST"])))
)]
pub(super) async fn ask_changes(State(app): State<Arc<App>>, from: FromWorker<AskChanges>) -> Answer {
    answer(changes(&app, &from.request).await)
}

impl WorkerRequest for AskChanges {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self {
            guard: fields.number("guard")?,
            since: fields.number("since")?,
            wait_ms: fields.optional_number("waitMs")?,
        })
    }
}

/// What changed, at once or after a wait. It ends when the guard does.
pub(in crate::intents) async fn changes(app: &App, request: &AskChanges) -> Result<Changes, Failure> {
    let wait_ms = checked_wait(request.wait_ms)?;
    wait(app, wait_ms, || {
        let now = app.registrar.now();
        let (guard_left, part, anchor) = app.registrar.read(|state| {
            let guard_left = guard_lives(state, Fence(request.guard), now)?;
            Ok::<_, Failure>((guard_left, Part::since(state, request.since), anchor(state)))
        })?;
        let Part { revision, sessions, more } = part;
        let is_enough = revision != request.since;
        let sessions = sessions.iter().map(|session| view_of(session, anchor)).collect();
        // A guard that runs out is not always told at once.
        Ok(Looked { found: Changes { revision, sessions, more }, is_enough, again_in: Some(guard_left) })
    })
    .await
}

/// As much of what changed as fits into one answer.
struct Part {
    revision: u64,
    sessions: Vec<Session>,
    more: bool,
}

impl Part {
    fn since(state: &kernel::State, since: u64) -> Self {
        let revision = state.sessions_revision();
        // A revision that there never was here is none that is known.
        let since = if since > revision { 0 } else { since };
        let is_news = |session: &&Session| since > 0 || session.state != SessionState::Ended;
        let mut part = Self { revision, sessions: Vec::new(), more: false };
        let mut bytes = 0;
        for session in state.sessions_since(since).filter(is_news) {
            bytes += bytes_of(session);
            if bytes > MOST_BYTES
                && let Some(last) = part.sessions.last()
            {
                (part.revision, part.more) = (last.revision, true);
                break;
            }
            part.sessions.push(session.clone());
        }
        part
    }
}

/// About how many bytes of an answer a session takes.
fn bytes_of(session: &Session) -> usize {
    let Session { intent, process, detail, .. } = session;
    let texts = intent.target.id().len() + intent.profile.len() + intent.correlation.len();
    1_024 + intent.params.len() + 2 * (texts + process.len() + detail.len())
}
