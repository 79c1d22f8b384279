//! `POST /v1/files/events`: reports of hooks that need no decision.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json as value;
use tenure_api::{Code, FileEventKind, FileEventReport};
use tenure_core::kernel::{FileCommand, FileSessionActivity, FileSessionEnd, Holder, Resource};
use tenure_host::paths::FileKey;

use super::acquire::register_sessions;
use super::caller::{HookIdentity, LocalProcess, ResolvedFileCaller, parse_absolute_path};
use super::resolve::RequestedPaths;
use super::{audit, blame, caller, guards, idle_release, liveness, resolve, spawn_blocking, submit, verdict};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::{MAX_MANIFEST_BYTES, RequestBody, check_count};
use crate::http::response::{HttpError, json};

/// The most files in one request.
const MAX_FILES: usize = 1_000;

/// Report an event of a coding agent.
///
/// Every event counts as activity. `turn_ended` starts the timer that releases the files of the session; any
/// other event cancels it.
#[utoipa::path(
    post,
    path = "/v1/files/events",
    tag = "files",
    operation_id = "tellFiles",
    request_body = tenure_api::FileEventReport,
    responses((status = 200, description = "Event was recorded")),
    extensions(("x-codes" = json!(["LOCAL_ONLY", "UNGUARDED", "HOLDER_TAKEN", "TOO_MANY_SESSIONS", "NO_SPACE"])))
)]
pub(super) async fn report_event(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: LocalProcess,
    body: RequestBody<FileEventReport, MAX_MANIFEST_BYTES>,
) -> Result<Response, HttpError> {
    let FileEventReport { speaker, event, cwd, paths, detail } = body.request;
    let spoken = HookIdentity::parse(speaker).map_err(|failure| failure.in_field("speaker"))?;
    let cwd = cwd.map(|cwd| parse_absolute_path(&cwd, "cwd")).transpose()?;
    check_count("paths", paths.len(), MAX_FILES)?;
    let detail = detail.unwrap_or_default();
    let detail: String = detail.chars().filter(|character| !character.is_control()).take(200).collect();
    if spoken.is_guard() {
        // A guard says nothing of sessions, but whom it speaks for.
        if !matches!(event, FileEventKind::Guarding) {
            return Err(HttpError::invalid("event", "is not a guard's to tell"));
        }
        caller::register_guard(&app, local).await?;
        return Ok(json(StatusCode::OK, &value!({})));
    }
    let file_caller = spawn_blocking(move || spoken.resolve(local)).await?;
    idle_release::record_activity(&app, &file_caller.own.process, &file_caller.own.id);
    match event {
        FileEventKind::Guarding => {
            return Err(HttpError::invalid("event", "is a guard's to tell, and nobody else's"));
        }
        FileEventKind::Active => {
            record_activity(&app, &caller, &file_caller, FileSessionActivity::Active).await?
        }
        FileEventKind::Unguarded => {
            record_activity(&app, &caller, &file_caller, FileSessionActivity::Active).await?;
            if app.files.settings.guarded_shells {
                let what = "the command was not run: nobody would ask about the files that it changes";
                return Err(HttpError::new(Code::Unguarded, what));
            }
        }
        FileEventKind::Read | FileEventKind::Wrote => {
            record_activity(&app, &caller, &file_caller, FileSessionActivity::Active).await?;
            let (session, own) = (file_caller.own.id.clone(), app.clone());
            let files = spawn_blocking(move || record_contents(&own, &session, cwd, &paths)).await?;
            if matches!(event, FileEventKind::Wrote) {
                audit::watch_files(&app, &file_caller.own.id, &files);
                blame::attribute_to_session(&app, &file_caller.own.id, files).await;
            }
        }
        FileEventKind::TurnEnded => {
            end_subagents(&app, &file_caller.own.id).await;
            record_activity(&app, &caller, &file_caller, FileSessionActivity::TurnEnded).await?;
            app.files.idle_release.wake();
        }
        // Where it is not said which one, nobody is over: else the session itself would lose all that it has.
        FileEventKind::SubagentEnded if file_caller.own.parent.is_none() => {
            record_activity(&app, &caller, &file_caller, FileSessionActivity::Active).await?;
        }
        FileEventKind::SubagentEnded => {
            let detail = if detail.is_empty() { "the subagent is done" } else { &detail };
            liveness::end(&app, vec![file_caller.own.id], FileSessionEnd::TransferredToParent, detail).await;
        }
        FileEventKind::Ended => {
            let detail = if detail.is_empty() { "the session is over" } else { &detail };
            blame::attribute_held_files(&app, &file_caller.own.id).await;
            end(&app, &file_caller, detail).await;
        }
    }
    Ok(json(StatusCode::OK, &value!({})))
}

/// A session is over. What its guards still have open is waited for, while nobody waits for us; its process may end meanwhile,
/// which is waited for in the same way.
async fn end(app: &Arc<App>, file_caller: &ResolvedFileCaller, detail: &str) {
    let (session, process) = (file_caller.own.id.clone(), file_caller.own.process.clone());
    if process.id().is_none_or(|process| app.files.guards.guards_of(&process).is_empty()) {
        liveness::end(app, vec![session], FileSessionEnd::Ended, detail).await;
        return;
    }
    let (app, detail) = (app.clone(), detail.to_owned());
    tokio::spawn(async move {
        guards::wait_until_closed(&app, &process, std::slice::from_ref(&session)).await;
        liveness::end(&app, vec![session], FileSessionEnd::Ended, &detail).await;
    });
}

async fn record_activity(
    app: &Arc<App>,
    caller: &Caller,
    file_caller: &ResolvedFileCaller,
    sign: FileSessionActivity,
) -> Result<(), HttpError> {
    register_sessions(app, caller, file_caller).await?;
    submit(app, caller, FileCommand::RecordActivity { session: file_caller.own.clone(), activity: sign })
        .await?;
    liveness::watch(app, &file_caller.own.process);
    Ok(())
}

/// A turn that is over with nothing in the background has no subagents any more, whether they said so or not.
async fn end_subagents(app: &App, session: &Holder) {
    let children: Vec<Holder> = app.registrar.read(|state| {
        let children = state.file_sessions().filter(|other| other.parent.as_ref() == Some(session));
        children.map(|child| child.id.clone()).collect()
    });
    if !children.is_empty() {
        liveness::end(app, children, FileSessionEnd::TransferredToParent, "the turn of its session is over")
            .await;
    }
}

/// What these files hold is what the session knows of them. It reads the disk.
fn record_contents(
    app: &App,
    session: &Holder,
    cwd: Option<PathBuf>,
    paths: &[String],
) -> Result<Vec<FileKey>, HttpError> {
    let cwd = cwd.unwrap_or_else(|| PathBuf::from("/"));
    let files =
        resolve::resolve_paths(app, &RequestedPaths { cwd, paths: paths.to_vec(), entries: Vec::new() })?;
    for file in &files {
        if let (Some(content), Ok(resource)) =
            (verdict::hash_file(&file.absolute), Resource::parse(&file.resource))
        {
            app.files.known_contents.record(session, &resource, content);
        }
    }
    Ok(files)
}
