//! `POST /api/v3/worker/changes`: which sessions changed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{AskChanges, Changes};
use tenure_core::kernel::{Fence, Session, SessionState};

use super::{guard_lives, must_be_worker};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::intents::changes::{Looked, wait};
use crate::intents::sessions::checked_wait;
use crate::intents::view::{anchor, view_of};

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
pub(super) async fn ask_changes(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, Failure> {
    must_be_worker(&caller)?;
    let request = read(body.fields)?;
    Ok(json(StatusCode::OK, &changes(&app, &request).await?))
}

fn read(mut fields: Fields) -> Result<AskChanges, Failure> {
    let asked = AskChanges {
        guard: fields.number("guard")?,
        since: fields.number("since")?,
        wait_ms: fields.optional_number("waitMs")?,
    };
    fields.finish()?;
    Ok(asked)
}

/// What changed, at once or after a wait. It ends when the guard does.
pub(in crate::intents) async fn changes(app: &App, request: &AskChanges) -> Result<Changes, Failure> {
    let wait_ms = checked_wait(request.wait_ms)?;
    wait(app, wait_ms, || {
        let now = app.registrar.now();
        let (guard_left, sessions, revision, anchor) = app.registrar.read(|state| {
            let guard_left = guard_lives(state, Fence(request.guard), now)?;
            let revision = state.sessions_revision();
            // A revision that there never was here is none that is known.
            let since = if request.since > revision { 0 } else { request.since };
            let is_news = |session: &&Session| since > 0 || session.state != SessionState::Ended;
            let sessions: Vec<_> = state.sessions_since(since).filter(is_news).cloned().collect();
            Ok::<_, Failure>((guard_left, sessions, revision, anchor(state)))
        })?;
        let is_enough = revision != request.since;
        let sessions = sessions.iter().map(|session| view_of(session, anchor)).collect();
        // A guard that runs out is not always told at once.
        Ok(Looked { found: Changes { revision, sessions }, is_enough, again_in: Some(guard_left) })
    })
    .await
}
