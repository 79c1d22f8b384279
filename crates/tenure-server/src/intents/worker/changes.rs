//! `POST /api/v3/worker/changes`: which sessions changed.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::{IntentSessionChanges, IntentSessionChangesRequest};
use tenure_core::kernel::{self, Fence, IntentSession, IntentSessionState};

use super::{Answer, AuthenticatedWorkerRequest, answer, require_leader};
use crate::app::App;
use crate::http::response::HttpError;
use crate::intents::sessions::{PollResult, long_poll, validate_wait};
use crate::intents::view::{clock_anchor, view_of};

/// About how many bytes of sessions are in one answer. Callers make sessions long, and a worker that could not read an
/// answer would take none of them.
const MAX_BYTES: usize = 1 << 20;

/// List changed intent sessions, or wait for a change.
#[utoipa::path(
    post,
    path = "/api/v3/worker/changes",
    tag = "worker",
    operation_id = "workerChanges",
    request_body = IntentSessionChangesRequest,
    responses((status = 200, description = "Sessions that changed", body = IntentSessionChanges)),
    extensions(("x-codes" = json!(["GUARD_LOST"])))
)]
pub(super) async fn post_changes(
    State(app): State<Arc<App>>,
    from: AuthenticatedWorkerRequest<IntentSessionChangesRequest>,
) -> Answer {
    answer(changes(&app, &from.request).await)
}

/// What changed, at once or after a wait. It ends when the guard does.
pub(in crate::intents) async fn changes(
    app: &App,
    request: &IntentSessionChangesRequest,
) -> Result<IntentSessionChanges, HttpError> {
    let wait_ms = validate_wait(request.wait_ms)?;
    long_poll(app, wait_ms, || {
        let now = app.registrar.now();
        let (leader_remaining, part, anchor) = app.registrar.read(|state| {
            let leader_remaining = require_leader(state, Fence(request.guard), now)?;
            Ok::<_, HttpError>((
                leader_remaining,
                ChangesPage::since(state, request.since),
                clock_anchor(state),
            ))
        })?;
        let ChangesPage { revision, sessions, more } = part;
        let is_enough = revision != request.since;
        let sessions = sessions.iter().map(|session| view_of(session, anchor)).collect();
        // A guard that runs out is not always told at once.
        Ok(PollResult {
            found: IntentSessionChanges { revision, sessions, more },
            is_enough,
            again_in: Some(leader_remaining),
        })
    })
    .await
}

/// As much of what changed as fits into one answer.
struct ChangesPage {
    revision: u64,
    sessions: Vec<IntentSession>,
    more: bool,
}

impl ChangesPage {
    fn since(state: &kernel::KernelState, since: u64) -> Self {
        let revision = state.intent_sessions_revision();
        // A revision that there never was here is none that is known.
        let since = if since > revision { 0 } else { since };
        let is_news = |session: &&IntentSession| since > 0 || session.state != IntentSessionState::Ended;
        let mut part = Self { revision, sessions: Vec::new(), more: false };
        let mut bytes = 0;
        for session in state.intent_sessions_since(since).filter(is_news) {
            bytes += bytes_of(session);
            if bytes > MAX_BYTES
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
fn bytes_of(session: &IntentSession) -> usize {
    let IntentSession { intent, process, detail, .. } = session;
    let texts = intent.target.id().len() + intent.profile.len() + intent.correlation.len();
    1_024 + intent.params.len() + 2 * (texts + process.len() + detail.len())
}
