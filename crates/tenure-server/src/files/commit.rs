//! `POST /v1/files/commit`: releases the committed and clean files of the session that committed them.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{CommitReport, CommitResult, HeldFileView, StagedFilesRequest};
use tenure_core::kernel::{FileCommand, FileOutcome, Holder, Resource};
use tenure_host::paths::{FileKey, PathTarget, target_of, work_tree_of};

use super::caller::{LocalProcess, parse_absolute_path};
use super::{audit, blame, idle_release, liveness, spawn_blocking, submit, view};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::{MAX_MANIFEST_BYTES, RequestBody, check_count};
use crate::http::response::{HttpError, json, unexpected};

/// The most files in one request. Who commits more says so in parts.
const MAX_FILES: usize = 10_000;

struct CommitRequest {
    root: PathBuf,
    paths: Vec<String>,
    dirty: HashSet<String>,
    session: Option<String>,
}

/// A file that was committed or staged, and is held.
struct HeldCommittedFile {
    file: FileKey,
    resource: Resource,
    holder: Holder,
    is_dirty: bool,
}

impl HeldCommittedFile {
    fn named(&self) -> (Resource, Holder) {
        (self.resource.clone(), self.holder.clone())
    }
}

/// Report committed files.
///
/// Releases files that are clean, not open for writing, and held by the committing session or its subagents.
/// Files of other sessions stay held and are returned in `foreign`.
#[utoipa::path(
    post,
    path = "/v1/files/commit",
    tag = "files",
    operation_id = "commitFiles",
    request_body = tenure_api::CommitReport,
    responses((status = 200, description = "Released and foreign files", body = CommitResult)),
    extensions(("x-codes" = json!(["LOCAL_ONLY"])))
)]
pub(super) async fn commit(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: LocalProcess,
    body: RequestBody<CommitReport, MAX_MANIFEST_BYTES>,
) -> Result<Response, HttpError> {
    let CommitReport { root, paths, dirty, session } = body.request;
    check_count("dirty", dirty.len(), MAX_FILES)?;
    let committed = CommitRequest::parse(&root, paths, dirty.into_iter().collect(), session)?;
    let (own, hint) = (app.clone(), committed.session.clone());
    let (sessions, held) =
        spawn_blocking(move || Ok((committers(&own, local, hint.as_deref()), find(&own, &committed)?)))
            .await?;
    // What subagents have is let go of as well.
    let holders: BTreeSet<Holder> = held.iter().map(|held| held.holder.clone()).collect();
    let holders: Vec<Holder> =
        holders.into_iter().filter(|holder| !is_foreign(&app, holder, &sessions)).collect();
    let turns = idle_release::process_locks_of(&app, &holders);
    let turns = idle_release::lock_all(&turns).await;
    let open = {
        idle_release::invalidate_grants(&app, &holders).await;
        let app = app.clone();
        spawn_blocking(move || {
            Ok(holders
                .iter()
                .flat_map(|holder| idle_release::resources_open_for_writing(&app, holder))
                .collect::<Vec<_>>())
        })
        .await?
    };
    let clean = held.iter().filter(|held| !held.is_dirty && !open.contains(&held.resource));
    let mut resources = Vec::new();
    for held in clean {
        resources.push(held.resource.clone());
        for alias in &held.file.aliases {
            resources.push(Resource::parse(alias)?);
        }
    }
    let mut report = CommitResult { released: Vec::new(), foreign: Vec::new(), left_dirty: Vec::new() };
    if !sessions.is_empty() {
        for part in resources.chunks(1_000) {
            let command = FileCommand::Commit { sessions: sessions.clone(), resources: part.to_vec() };
            let FileOutcome::Released { resources, .. } = submit(&app, &caller, command).await?.0 else {
                return Err(unexpected());
            };
            report.released.extend(resources.iter().map(|resource| view::path(&app, resource)));
        }
    }
    drop(turns);
    blame::forget(&app, resources).await;
    let foreign: Vec<_> = foreign(&app, &held, &sessions).map(HeldCommittedFile::named).collect();
    let now = app.registrar.now();
    // Git tells of one commit twice: when it moves the branch, and after it.
    let resources = foreign.iter().map(|(resource, _)| resource.clone());
    let resources = resources.filter(|resource| app.files.violations.is_new(resource, now)).collect();
    let detail = "it was committed by somebody else than its owner";
    audit::report_violations(&app, resources, sessions.first().cloned(), detail);
    report.foreign = held_by_views(&app, foreign).await?;
    Ok(json(StatusCode::OK, &report))
}

/// Check whether other sessions hold staged files.
#[utoipa::path(
    post,
    path = "/v1/files/staged",
    tag = "files",
    operation_id = "stagedFiles",
    request_body = tenure_api::StagedFilesRequest,
    responses((status = 200, description = "Files of other sessions", body = CommitResult)),
    extensions(("x-codes" = json!(["LOCAL_ONLY"])))
)]
pub(super) async fn check_staged_files(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: LocalProcess,
    body: RequestBody<StagedFilesRequest, MAX_MANIFEST_BYTES>,
) -> Result<Response, HttpError> {
    let StagedFilesRequest { root, paths, session } = body.request;
    let staged = CommitRequest::parse(&root, paths, HashSet::new(), session)?;
    let (own, hint) = (app.clone(), staged.session.clone());
    let (sessions, files) =
        spawn_blocking(move || Ok((committers(&own, local, hint.as_deref()), resolve_files(&own, &staged)?)))
            .await?;
    let held = holders_of(&app, &files);
    // Somebody who died a moment ago has nothing.
    let holders: BTreeSet<Holder> = held.iter().map(|held| held.holder.clone()).collect();
    let living = liveness::end_dead_sessions(&app, &holders.into_iter().collect::<Vec<_>>()).await;
    let now = app.registrar.now();
    let foreign = foreign(&app, &held, &sessions).filter(|held| living.contains(&held.holder));
    let foreign = held_by_views(&app, foreign.map(HeldCommittedFile::named).collect()).await?;
    let mut uncommitted_files = Vec::new();
    for (file, _) in files.iter().filter(|(file, _)| caller.can_see(&file.resource)) {
        let resource = Resource::parse(&file.resource)?;
        let uncommitted = app.registrar.read(|state| state.uncommitted_file(&resource).cloned());
        let is_foreign_owner = |uncommitted: &tenure_core::kernel::UncommittedFile| {
            !sessions.contains(&uncommitted.owner.holder)
        };
        if let Some(uncommitted) = uncommitted.filter(is_foreign_owner) {
            uncommitted_files.push((resource, uncommitted));
        }
    }
    let own = app.clone();
    let views = spawn_blocking(move || {
        Ok(uncommitted_files
            .iter()
            .map(|(resource, uncommitted)| view::uncommitted_file(&own, resource, uncommitted, now))
            .collect())
    });
    Ok(json(StatusCode::OK, &CommitResult { released: Vec::new(), foreign, left_dirty: views.await? }))
}

/// Who has these, as it is now. It looks at their processes.
async fn held_by_views(
    app: &Arc<App>,
    held: Vec<(Resource, Holder)>,
) -> Result<Vec<HeldFileView>, HttpError> {
    let (own, now) = (app.clone(), app.registrar.now());
    spawn_blocking(move || {
        Ok(held.iter().map(|(resource, holder)| view::held_file_view(&own, resource, holder, now)).collect())
    })
    .await
}

/// The sessions in whose name a process commits: one, or none if no agent that is known is above it.
fn committers(app: &App, local: LocalProcess, hint: Option<&str>) -> Vec<Holder> {
    idle_release::find_session(app, &idle_release::ancestry(local.pid), hint).into_iter().collect()
}

fn find(app: &App, committed: &CommitRequest) -> Result<Vec<HeldCommittedFile>, HttpError> {
    Ok(holders_of(app, &resolve_files(app, committed)?))
}

/// The files that are named, and whether each is dirty. It looks at the disk; what cannot be looked at is left out.
fn resolve_files(app: &App, committed: &CommitRequest) -> Result<Vec<(FileKey, bool)>, HttpError> {
    let tree =
        work_tree_of(&committed.root).map_err(|error| HttpError::invalid("root", &error.to_string()))?;
    let Some(tree) = tree else { return Ok(Vec::new()) };
    app.files.trees.record(&tree);
    let mut found = Vec::new();
    for path in &committed.paths {
        if let Ok(PathTarget::File(file)) = target_of(&tree.root.join(path), &tree.root) {
            found.push((file, committed.dirty.contains(path)));
        }
    }
    Ok(found)
}

/// Those of them that a session has.
fn holders_of(app: &App, files: &[(FileKey, bool)]) -> Vec<HeldCommittedFile> {
    app.registrar.read(|state| {
        let held = |(file, is_dirty): &(FileKey, bool)| {
            let resource = Resource::parse(&file.resource).ok()?;
            let holder = state.file_lease(&resource).map(|(_, _, holder)| holder.clone())?;
            state.file_session(&holder)?;
            Some(HeldCommittedFile { file: file.clone(), resource, holder, is_dirty: *is_dirty })
        };
        files.iter().filter_map(held).collect()
    })
}

/// What belongs neither to these sessions nor to subagents of theirs.
fn foreign<'a>(
    app: &'a App,
    held: &'a [HeldCommittedFile],
    sessions: &'a [Holder],
) -> impl Iterator<Item = &'a HeldCommittedFile> {
    held.iter().filter(move |held| is_foreign(app, &held.holder, sessions))
}

fn is_foreign(app: &App, holder: &Holder, sessions: &[Holder]) -> bool {
    let root = app.registrar.read(|state| {
        let parent = |id: &Holder| state.file_session(id).and_then(|session| session.parent.clone());
        std::iter::successors(Some(holder.clone()), parent).last()
    });
    root.is_none_or(|root| !sessions.contains(&root))
}

impl CommitRequest {
    fn parse(
        root: &str,
        paths: Vec<String>,
        dirty: HashSet<String>,
        session: Option<String>,
    ) -> Result<Self, HttpError> {
        check_count("paths", paths.len(), MAX_FILES)?;
        Ok(Self { root: parse_absolute_path(root, "root")?, paths, dirty, session })
    }
}
