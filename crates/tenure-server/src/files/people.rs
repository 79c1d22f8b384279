//! What only a person may do: give a file away, release it by force, stop the server.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json as value;
use tenure_api::{Code, FileView};
use tenure_core::kernel::{FileAnswer, FileCommand, Holder, State as Kernel};
use tenure_core::rules::names::check_name;

use super::list::{Which, shown};
use super::local::Local;
use super::speaker::absolute;
use super::{apart, ask, liveness, targets};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;

/// Hand a file to a session, whoever of the others has it.
#[utoipa::path(
    post,
    path = "/v1/files/give",
    tag = "files",
    operation_id = "giveFile",
    request_body = tenure_api::FileGive,
    responses((status = 200, description = "The session has it", body = FileView)),
    extensions(("x-codes" = json!(["NOT_FOUND", "HELD", "LOCAL_ONLY", "AGENT_FORBIDDEN", "NO_SPACE", "HELD_BACK"])))
)]
pub(super) async fn give(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: Local,
    body: JsonBody,
) -> Result<Response, Failure> {
    let mut fields = body.fields;
    let (path, to) = (absolute(&fields.text("path")?, "path")?, fields.text("to")?);
    fields.finish()?;
    local.must_be_a_person(&app)?;
    let to = app.registrar.read(|state| session_named(state, &to))?;
    if liveness::check(&app, std::slice::from_ref(&to)).await.is_empty() {
        return Err(no_such_session("it has ended"));
    }
    let own = app.clone();
    let file = apart(move || Which::find(&own, &path)).await?;
    caller.require_resource(&file.resource)?;
    let command = FileCommand::Give { file: targets::want(&file)?, to, by: caller.principal.clone() };
    ask(&app, &caller, command).await?;
    let told = shown(&app, file).await?.file;
    let told = told.ok_or_else(|| no_such_session("it has ended meanwhile, and what it had is free"))?;
    Ok(json(StatusCode::OK, &told))
}

/// Take a file from whoever has it. Who did that, and why, is in the ledger.
#[utoipa::path(
    post,
    path = "/v1/files/force-release",
    tag = "files",
    operation_id = "forceReleaseFile",
    request_body = tenure_api::FileForce,
    responses((status = 200, description = "Who had it", body = FileView)),
    extensions(("x-codes" = json!(["NOT_FOUND", "LOCAL_ONLY", "AGENT_FORBIDDEN"])))
)]
pub(super) async fn force_release(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: Local,
    body: JsonBody,
) -> Result<Response, Failure> {
    let mut fields = body.fields;
    let (path, reason) = (absolute(&fields.text("path")?, "path")?, fields.text("reason")?);
    fields.finish()?;
    check_name("reason", &reason)?;
    local.must_be_a_person(&app)?;
    let own = app.clone();
    let file = apart(move || Which::find(&own, &path)).await?;
    caller.require_resource(&file.resource)?;
    let resources = targets::names(&file)?;
    let nobody =
        || Failure::new(Code::NotFound, "no session has this file; `tenure files` shows what is held");
    let told = shown(&app, file).await?.file.ok_or_else(nobody)?;
    let command =
        FileCommand::ForceRelease { resources, by: caller.principal.clone(), detail: reason.into() };
    match ask(&app, &caller, command).await?.0 {
        FileAnswer::Released { resources, .. } if !resources.is_empty() => Ok(json(StatusCode::OK, &told)),
        _ => Err(nobody()),
    }
}

/// Stop the server. What is held stays in the ledger.
#[utoipa::path(
    post,
    path = "/v1/stop",
    tag = "files",
    operation_id = "stop",
    responses((status = 200, description = "It is about to stop")),
    extensions(("x-codes" = json!(["LOCAL_ONLY", "AGENT_FORBIDDEN"])))
)]
pub(super) async fn stop(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: Local,
) -> Result<Response, Failure> {
    caller.require_unlimited_admin("stopping the server")?;
    local.must_be_a_person(&app)?;
    app.files.stopping.ask();
    Ok(json(StatusCode::OK, &value!({})))
}

/// The one session that is called so, or begins so.
fn session_named(state: &Kernel, name: &str) -> Result<Holder, Failure> {
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

fn no_such_session(why: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no such session: {why}; `tenure files` shows who lives"))
}
