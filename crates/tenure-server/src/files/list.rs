//! `GET /v1/files`: held files, and live sessions.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use tenure_api::{FileSessionView, FileStatus, FilesOverview};
use tenure_core::kernel::{FileSession, Resource};
use tenure_host::paths::FileKey;

use super::caller::{LocalProcess, parse_absolute_path};
use super::view::HeldFileSnapshot;
use super::{FilesApi, caller, resolve, spawn_blocking, view};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::parse_query;
use crate::http::response::{HttpError, json};

/// Which of all.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilesQuery {
    below: Option<String>,
}

/// Which file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileQuery {
    path: String,
}

impl FileQuery {
    /// The file that is asked for. It looks at the disk.
    pub(super) fn resolve(app: &App, path: &Path) -> Result<FileKey, HttpError> {
        let file = resolve::resolve_path(app, path)
            .map_err(|error| HttpError::invalid("path", &error.to_string()))?;
        file.ok_or_else(|| {
            let reason =
                "is in no working tree of git, or is git's own; only files of a working tree have owners";
            HttpError::invalid("path", reason)
        })
    }

    pub(super) async fn read(app: &Arc<App>, uri: &Uri) -> Result<FileKey, HttpError> {
        let FileQuery { path } = parse_query(uri)?;
        let (path, app) = (parse_absolute_path(&path, "path")?, app.clone());
        spawn_blocking(move || Self::resolve(&app, &path)).await
    }
}

/// List held files and live file sessions.
#[utoipa::path(
    get,
    path = "/v1/files",
    tag = "files",
    operation_id = "files",
    params(("below" = Option<String>, Query, description = "Absolute real path of a folder. Lists only its files, without sessions")),
    responses((status = 200, description = "Files and sessions", body = FilesOverview)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: Result<LocalProcess, HttpError>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let now = app.registrar.now();
    let FilesQuery { below } = parse_query(&uri)?;
    let below = below.map(|below| parse_absolute_path(&below, "below")).transpose()?;
    let has_standing = below.is_some() && local.is_ok();
    if has_standing {
        // It may write to the disk, so not while the state is read.
        let own = app.clone();
        spawn_blocking(move || Ok(own.files.grant_generations.generation_of_any())).await?;
    }
    // Before the files: a lease that begins meanwhile changes the mark.
    let standing = app
        .registrar
        .read(|_| has_standing.then(|| app.files.grant_generations.generation_of_any()).flatten());
    let in_folder = below.map(|folder| held_below(&app, &folder));
    let (files, sessions) = app.registrar.read(|state| {
        let leases = state.file_sessions().flat_map(|session| state.leases_of_holder(&session.id));
        let is_in_folder =
            |resource: &Resource| in_folder.as_ref().is_none_or(|resources| resources.contains(resource));
        let seen =
            leases.filter(|lease| is_in_folder(lease.resource) && caller.can_see(lease.resource.as_str()));
        let files: Vec<HeldFileSnapshot> =
            seen.filter_map(|lease| HeldFileSnapshot::of(state, &lease, now)).collect();
        let response = |session: &FileSession| {
            let files = state.leases_of_holder(&session.id).count();
            (session.clone(), files)
        };
        let is_listed = in_folder.is_none() && caller.can_see("");
        let sessions: Vec<_> = state.file_sessions().filter(|_| is_listed).map(response).collect();
        (files, sessions)
    });
    let audit =
        if in_folder.is_none() && caller.can_see("") { app.files.audit.watched_trees() } else { Vec::new() };
    let overview = spawn_blocking(move || {
        let mut files: Vec<_> = files.into_iter().filter_map(|seen| seen.into_view(&app)).collect();
        files.sort_by(|one, other| (&one.root, &one.path).cmp(&(&other.root, &other.path)));
        let session_view = |(session, files): (FileSession, usize)| FileSessionView {
            owner: caller::owner_view(&session.owner()),
            parent: session.parent.as_ref().map(|parent| parent.as_str().to_owned()),
            known_ms: now.since(session.began_at).as_millis(),
            idle_ms: now.since(session.seen_at).as_millis(),
            files,
        };
        let sessions = sessions.into_iter().map(session_view).collect();
        Ok(FilesOverview { files, sessions, audit, standing })
    });
    Ok(json(StatusCode::OK, &overview.await?))
}

/// What is leased in this folder.
fn held_below(app: &App, folder: &Path) -> HashSet<Resource> {
    let held: Vec<Resource> = app.registrar.read(|state| {
        let leases = state.file_sessions().flat_map(|session| state.leases_of_holder(&session.id));
        leases.map(|lease| lease.resource.clone()).collect()
    });
    let is_there =
        |resource: &Resource| FilesApi::path_of(app, resource).is_some_and(|path| path.starts_with(folder));
    held.into_iter().filter(is_there).collect()
}

/// Get the owner of a file.
#[utoipa::path(
    get,
    path = "/v1/files/one",
    tag = "files",
    operation_id = "file",
    params(("path" = String, Query, description = "Any absolute path of the file")),
    responses((status = 200, description = "Owner, if the file is held", body = FileStatus)),
    extensions(("x-codes" = json!(["LOCAL_ONLY"])))
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    _: LocalProcess,
    uri: Uri,
) -> Result<Response, HttpError> {
    let file = FileQuery::read(&app, &uri).await?;
    caller.require_resource(&file.resource)?;
    Ok(json(StatusCode::OK, &file_view(&app, file).await?))
}

/// One file as it is shown.
pub(super) async fn file_view(app: &Arc<App>, file: FileKey) -> Result<FileStatus, HttpError> {
    let (app, now) = (app.clone(), app.registrar.now());
    spawn_blocking(move || {
        let resource = Resource::parse(&file.resource)?;
        // Somebody may have it by another name that it has.
        let names = resolve::names(&file)?;
        let (seen, uncommitted) = app.registrar.read(|state| {
            let held = |name: &Resource| {
                let (_, _, holder) = state.file_lease(name)?;
                let lease = state.leases_of_holder(holder).find(|lease| lease.resource == name)?;
                HeldFileSnapshot::of(state, &lease, now)
            };
            (names.iter().filter_map(held).collect::<Vec<_>>(), state.uncommitted_file(&resource).cloned())
        });
        Ok(FileStatus {
            path: view::relative(&file),
            file: seen.into_iter().find_map(|seen| seen.into_view(&app)),
            left: uncommitted.map(|found| view::uncommitted_file(&app, &resource, &found, now)),
        })
    })
    .await
}
