//! What only a person may do: give a file away, release it by force, stop the server.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json as value;
use tenure_api::{Code, FileForceReleaseRequest, FileGiveRequest, FileView};
use tenure_core::kernel::{FileCommand, FileOutcome, Holder, KernelState as Kernel};
use tenure_core::rules::check_name;

use super::caller::{LocalProcess, parse_absolute_path};
use super::list::{FileQuery, file_view};
use super::{liveness, resolve, spawn_blocking, submit};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::RequestBody;
use crate::http::response::{HttpError, json};

/// Give a file to a session, even if another session holds it.
#[utoipa::path(
    post,
    path = "/v1/files/give",
    tag = "files",
    operation_id = "giveFile",
    request_body = tenure_api::FileGiveRequest,
    responses((status = 200, description = "Session holds the file", body = FileView)),
    extensions(("x-codes" = json!(["NOT_FOUND", "HELD", "LOCAL_ONLY", "AGENT_FORBIDDEN", "NO_SPACE", "HELD_BACK"])))
)]
pub(super) async fn give(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: LocalProcess,
    body: RequestBody<FileGiveRequest>,
) -> Result<Response, HttpError> {
    let (path, to) = (parse_absolute_path(&body.request.path, "path")?, body.request.to);
    local.require_human(&app)?;
    let to = app.registrar.read(|state| session_named(state, &to))?;
    if liveness::end_dead_sessions(&app, std::slice::from_ref(&to)).await.is_empty() {
        return Err(no_such_session("it has ended"));
    }
    let own = app.clone();
    let file = spawn_blocking(move || FileQuery::resolve(&own, &path)).await?;
    caller.require_resource(&file.resource)?;
    let command = FileCommand::Give { file: resolve::file_request(&file)?, to, by: caller.principal.clone() };
    submit(&app, &caller, command).await?;
    let file = file_view(&app, file).await?.file;
    let held = file.ok_or_else(|| no_such_session("it has ended meanwhile, and what it had is free"))?;
    Ok(json(StatusCode::OK, &held))
}

/// Release a file by force.
///
/// The ledger records the principal and the reason.
#[utoipa::path(
    post,
    path = "/v1/files/force-release",
    tag = "files",
    operation_id = "forceReleaseFile",
    request_body = tenure_api::FileForceReleaseRequest,
    responses((status = 200, description = "File before its release", body = FileView)),
    extensions(("x-codes" = json!(["NOT_FOUND", "LOCAL_ONLY", "AGENT_FORBIDDEN"])))
)]
pub(super) async fn force_release(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: LocalProcess,
    body: RequestBody<FileForceReleaseRequest>,
) -> Result<Response, HttpError> {
    let (path, reason) = (parse_absolute_path(&body.request.path, "path")?, body.request.reason);
    check_name("reason", &reason)?;
    local.require_human(&app)?;
    let own = app.clone();
    let file = spawn_blocking(move || FileQuery::resolve(&own, &path)).await?;
    caller.require_resource(&file.resource)?;
    let resources = resolve::names(&file)?;
    let not_held =
        || HttpError::new(Code::NotFound, "no session has this file; `tenure files` shows what is held");
    let held = file_view(&app, file).await?.file.ok_or_else(not_held)?;
    let command =
        FileCommand::ForceRelease { resources, by: caller.principal.clone(), detail: reason.into() };
    match submit(&app, &caller, command).await?.0 {
        FileOutcome::Released { resources, .. } if !resources.is_empty() => Ok(json(StatusCode::OK, &held)),
        _ => Err(not_held()),
    }
}

/// Stop the server.
///
/// Leases stay in the ledger.
#[utoipa::path(
    post,
    path = "/v1/stop",
    tag = "files",
    operation_id = "stop",
    responses((status = 200, description = "Server is stopping")),
    extensions(("x-codes" = json!(["LOCAL_ONLY", "AGENT_FORBIDDEN"])))
)]
pub(super) async fn stop(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: LocalProcess,
) -> Result<Response, HttpError> {
    caller.require_unlimited_admin("stopping the server")?;
    local.require_human(&app)?;
    app.files.idle_shutdown.request_shutdown();
    Ok(json(StatusCode::OK, &value!({})))
}

/// The one session that is called so, or begins so.
fn session_named(state: &Kernel, name: &str) -> Result<Holder, HttpError> {
    let exactly = state.file_sessions().find(|session| session.id.as_str() == name);
    if let Some(session) = exactly {
        return Ok(session.id.clone());
    }
    let fits = |text: &str| text.starts_with(name);
    let found: Vec<_> = state
        .file_sessions()
        .filter(|session| session.parent.is_none())
        .filter(|session| fits(&session.session) || fits(session.id.as_str()))
        .collect();
    match &found[..] {
        [only] => Ok(only.id.clone()),
        [] => Err(no_such_session("none is called so")),
        _ => Err(no_such_session("several begin so: say more of its name")),
    }
}

fn no_such_session(why: &str) -> HttpError {
    HttpError::new(Code::NotFound, format!("there is no such session: {why}; `tenure files` shows who lives"))
}
