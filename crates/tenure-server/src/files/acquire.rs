//! `POST /v1/files/acquire`: an agent is about to change files.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{FileAcquireRequest, FileVerdict, FileVerdictKind};
use tenure_core::kernel::{
    FileAcquire, FileCommand, FileOutcome, FileSessionActivity, FileSessionInfo, Holder, Tick,
};
use tenure_host::paths::FileKey;

use super::caller::{
    GuardRequest, HookIdentity, LocalProcess, ResolvedFileCaller, UNNAMED, parse_absolute_path,
};
use super::resolve::RequestedPaths;
use super::{audit, blame, caller, idle_release, liveness, resolve, spawn_blocking, submit, verdict};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::{MAX_MANIFEST_BYTES, RequestBody, check_count};
use crate::http::response::{HttpError, json};

/// The most files in one request.
const MAX_FILES: usize = 1_000;
/// How often the names of files may change under the question before it is given up.
const MAX_ROUNDS: usize = 8;

struct AcquireFilesRequest {
    identity: HookIdentity,
    guard: Option<GuardRequest>,
    paths: RequestedPaths,
    whole: bool,
}

/// Acquire files for an agent.
///
/// Grants all files or none. If a live session holds one, the response names it and the time of the only
/// retry; the same request at that time is the retry.
#[utoipa::path(
    post,
    path = "/v1/files/acquire",
    tag = "files",
    operation_id = "acquireFiles",
    request_body = tenure_api::FileAcquireRequest,
    responses((status = 200, description = "Verdict on the files", body = FileVerdict)),
    extensions(("x-codes" = json!(["LOCAL_ONLY", "HOLDER_TAKEN", "TOO_MANY_SESSIONS", "QUEUE_FULL", "NO_SPACE", "HELD_BACK"])))
)]
pub(super) async fn acquire(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: LocalProcess,
    body: RequestBody<FileAcquireRequest, MAX_MANIFEST_BYTES>,
) -> Result<Response, HttpError> {
    let AcquireFilesRequest { identity: spoken, guard: guarded, paths: requested, whole } =
        parse_request(body.request)?;
    let background = guarded.is_some();
    let (file_caller, standing) = match guarded {
        // The mark comes before the lease: once that is there, its end changes the mark.
        Some(guarded) => guarded.resolve_caller(&app, local, &spoken).await?,
        None => {
            let file_caller = spawn_blocking(move || spoken.resolve(local)).await?;
            idle_release::record_activity(&app, &file_caller.own.process, &file_caller.own.id);
            (file_caller, None)
        }
    };
    // Nothing is let go of between the question and the answer: whoever looks what is open looks before or after.
    let turn = app.files.process_locks.lock_of(&file_caller.own.process);
    let _turn = turn.read().await;
    // Before anything is got in its name: whoever asks may hang up at any moment.
    liveness::watch(&app, &file_caller.own.process);
    register_sessions(&app, &caller, &file_caller).await?;
    let session = file_caller.own.id.clone();
    let (files, answered) = acquire_resolved(&app, &caller, (&file_caller, background), &requested).await?;
    // Once more: it may have ended before its session was known.
    liveness::watch(&app, &file_caller.own.process);
    audit::watch_files(&app, &session, &files);
    if let FileOutcome::Granted { leases, .. } = &answered.0
        && !leases.is_empty()
    {
        blame::attribute_to_unknown(&app, files.clone()).await;
    }
    if background {
        app.files.idle_release.wake();
    }
    let mut verdict =
        verdict::file_verdict(&app, (&session, &file_caller.own.process), files, whole, answered).await?;
    if verdict.verdict == FileVerdictKind::Granted && verdict.held.is_empty() {
        verdict.standing = standing;
    }
    Ok(json(StatusCode::OK, &verdict))
}

/// Asks the kernel, until what was asked for is what the names lead to.
async fn acquire_resolved(
    app: &Arc<App>,
    caller: &Caller,
    (file_caller, background): (&ResolvedFileCaller, bool),
    requested: &RequestedPaths,
) -> Result<(Vec<FileKey>, (FileOutcome, Tick)), HttpError> {
    let mut got = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let files = look(app, requested).await?;
        files.iter().try_for_each(|file| caller.require_resource(&file.resource))?;
        let command = |checked| {
            let (session, files) = (file_caller.own.clone(), resolve::file_requests(&files)?);
            Ok(FileCommand::Acquire(FileAcquire { session, files, checked, background }))
        };
        let (mut answer, now) = liveness::execute_with_liveness_checks(app, caller, command).await?;
        let FileOutcome::Granted { leases, .. } = &mut answer else { return Ok((files, (answer, now))) };
        // What an earlier round got is got only now as well: until then, others could change it.
        got.append(leases);
        if look(app, requested).await? == files {
            leases.clone_from(&got);
            return Ok((files, (answer, now)));
        }
        // A link was laid or a folder moved while the question was under way: what was got may not be all that leads there.
    }
    Err(HttpError::invalid("paths", "change under the question; ask again when nothing moves them"))
}

/// Sessions above the one that speaks are known before it; and what a guard got for its process before anybody said its name is
/// its own.
pub(super) async fn register_sessions(
    app: &Arc<App>,
    caller: &Caller,
    file_caller: &ResolvedFileCaller,
) -> Result<(), HttpError> {
    let root = file_caller.above.first().unwrap_or(&file_caller.own);
    if let Some(from) = unnamed(app, root)? {
        submit(app, caller, FileCommand::Adopt { from, to: root.clone() }).await?;
    }
    for session in &file_caller.above {
        if app.registrar.read(|state| state.file_session(&session.id).is_none()) {
            let record = FileCommand::RecordActivity {
                session: session.clone(),
                activity: FileSessionActivity::Active,
            };
            submit(app, caller, record).await?;
            liveness::watch(app, &session.process);
        }
    }
    Ok(())
}

/// The session without a name of the same process, if there is one.
fn unnamed(app: &App, root: &FileSessionInfo) -> Result<Option<Holder>, HttpError> {
    let Some(process) = root.process.id() else { return Ok(None) };
    let id = Holder::parse(&caller::session_id(&root.agent, UNNAMED, &process))?;
    let is_there = id != root.id && app.registrar.read(|state| state.file_session(&id).is_some());
    Ok(is_there.then_some(id))
}

async fn look(app: &Arc<App>, requested: &RequestedPaths) -> Result<Vec<FileKey>, HttpError> {
    let (app, requested) = (app.clone(), requested.clone());
    spawn_blocking(move || resolve::resolve_paths(&app, &requested)).await
}

fn parse_request(request: FileAcquireRequest) -> Result<AcquireFilesRequest, HttpError> {
    let guarded = GuardRequest::parse(&request)?;
    let FileAcquireRequest { speaker, cwd, paths, entries, whole, .. } = request;
    let spoken = HookIdentity::parse(speaker).map_err(|failure| failure.in_field("speaker"))?;
    let cwd: PathBuf = parse_absolute_path(&cwd, "cwd")?;
    check_count("paths", paths.len(), MAX_FILES)?;
    check_count("entries", entries.len(), MAX_FILES)?;
    if guarded.is_some() != spoken.is_guard() {
        return Err(HttpError::invalid("process", "is what a guard says, and nobody else"));
    }
    if paths.is_empty() && entries.is_empty() {
        return Err(HttpError::invalid("paths", "is empty; name at least one file"));
    }
    Ok(AcquireFilesRequest {
        identity: spoken,
        guard: guarded,
        paths: RequestedPaths { cwd, paths, entries },
        whole,
    })
}
