//! `GET /v1/files`: what somebody has, and who lives.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use tenure_api::{Files, OneFile, SessionOfAgent};
use tenure_core::kernel::{FileSession, Resource};
use tenure_gate::paths::FileKey;

use super::local::Local;
use super::speaker::absolute;
use super::view::Seen;
use super::{FileFace, apart, targets, view};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::fields::query;

/// Which of all.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Below {
    below: Option<String>,
}

/// Which file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    path: String,
}

impl Which {
    /// The file that is asked for. It looks at the disk.
    pub(super) fn find(app: &App, path: &Path) -> Result<FileKey, Failure> {
        let file = targets::one(app, path).map_err(|error| Failure::invalid("path", &error.to_string()))?;
        file.ok_or_else(|| {
            let reason =
                "is in no working tree of git, or is git's own; only files of a working tree have owners";
            Failure::invalid("path", reason)
        })
    }

    pub(super) async fn read(app: &Arc<App>, uri: &Uri) -> Result<FileKey, Failure> {
        let Which { path } = query(uri)?;
        let (path, app) = (absolute(&path, "path")?, app.clone());
        apart(move || Self::find(&app, &path)).await
    }
}

/// What somebody has, and who lives.
#[utoipa::path(
    get,
    path = "/v1/files",
    tag = "files",
    operation_id = "files",
    params(("below" = Option<String>, Query, description = "Only files in this folder, by its real path, and nothing else")),
    responses((status = 200, description = "All of it", body = Files)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: Result<Local, Failure>,
    uri: Uri,
) -> Result<Response, Failure> {
    let now = app.registrar.now();
    let Below { below } = query(&uri)?;
    let below = below.map(|below| absolute(&below, "below")).transpose()?;
    let has_standing = below.is_some() && local.is_ok();
    if has_standing {
        // It may write to the disk, so not while the state is read.
        let own = app.clone();
        apart(move || Ok(own.files.standings.of_any())).await?;
    }
    // Before the files: a lease that begins meanwhile changes the mark.
    let standing = app.registrar.read(|_| has_standing.then(|| app.files.standings.of_any()).flatten());
    let wanted = below.map(|folder| held_below(&app, &folder));
    let (files, sessions) = app.registrar.read(|state| {
        let leases = state.file_sessions().flat_map(|session| state.leases_of_holder(&session.id));
        let is_wanted = |resource: &Resource| wanted.as_ref().is_none_or(|wanted| wanted.contains(resource));
        let seen =
            leases.filter(|lease| is_wanted(lease.resource) && caller.may_see(lease.resource.as_str()));
        let files: Vec<Seen> = seen.filter_map(|lease| Seen::of(state, &lease, now)).collect();
        let told = |session: &FileSession| {
            let files = state.leases_of_holder(&session.id).count();
            (session.clone(), files)
        };
        let is_told = wanted.is_none() && caller.may_see("");
        let sessions: Vec<_> = state.file_sessions().filter(|_| is_told).map(told).collect();
        (files, sessions)
    });
    let audit = if wanted.is_none() && caller.may_see("") { app.files.audit.shown() } else { Vec::new() };
    let told = apart(move || {
        let mut files: Vec<_> = files.into_iter().filter_map(|seen| seen.shown(&app)).collect();
        files.sort_by(|one, other| (&one.root, &one.path).cmp(&(&other.root, &other.path)));
        let told = |(session, files): (FileSession, usize)| SessionOfAgent {
            owner: view::owner(&session.owner()),
            parent: session.parent.as_ref().map(|parent| parent.as_str().to_owned()),
            known_ms: now.since(session.began_at).as_millis(),
            idle_ms: now.since(session.seen_at).as_millis(),
            files,
        };
        let sessions = sessions.into_iter().map(told).collect();
        Ok(Files { files, sessions, audit, standing })
    });
    Ok(json(StatusCode::OK, &told.await?))
}

/// What is leased in this folder.
fn held_below(app: &App, folder: &Path) -> HashSet<Resource> {
    let held: Vec<Resource> = app.registrar.read(|state| {
        let leases = state.file_sessions().flat_map(|session| state.leases_of_holder(&session.id));
        leases.map(|lease| lease.resource.clone()).collect()
    });
    let is_there =
        |resource: &Resource| FileFace::path_of(app, resource).is_some_and(|path| path.starts_with(folder));
    held.into_iter().filter(is_there).collect()
}

/// Who has a file.
#[utoipa::path(
    get,
    path = "/v1/files/one",
    tag = "files",
    operation_id = "file",
    params(("path" = String, Query, description = "The file, by any absolute path that leads to it")),
    responses((status = 200, description = "Who has it, if anybody has", body = OneFile)),
    extensions(("x-codes" = json!(["LOCAL_ONLY"])))
)]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    caller: Caller,
    _: Local,
    uri: Uri,
) -> Result<Response, Failure> {
    let file = Which::read(&app, &uri).await?;
    caller.require_resource(&file.resource)?;
    Ok(json(StatusCode::OK, &shown(&app, file).await?))
}

/// One file as it is shown.
pub(super) async fn shown(app: &Arc<App>, file: FileKey) -> Result<OneFile, Failure> {
    let (app, now) = (app.clone(), app.registrar.now());
    apart(move || {
        let resource = Resource::parse(&file.resource)?;
        // Somebody may have it by another name that it has.
        let names = targets::names(&file)?;
        let (seen, left) = app.registrar.read(|state| {
            let held = |name: &Resource| {
                let (_, _, holder) = state.file_lease(name)?;
                let lease = state.leases_of_holder(holder).find(|lease| lease.resource == name)?;
                Seen::of(state, &lease, now)
            };
            (names.iter().filter_map(held).collect::<Vec<_>>(), state.left_file(&resource).cloned())
        });
        Ok(OneFile {
            path: view::relative(&file),
            file: seen.into_iter().find_map(|seen| seen.shown(&app)),
            left: left.map(|left| view::left_by(&app, &resource, &left, now)),
        })
    })
    .await
}
