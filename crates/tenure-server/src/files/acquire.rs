//! `POST /v1/files/acquire`: an agent is about to change files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{FileVerdict, VerdictKind};
use tenure_core::kernel::{
    FileAcquire, FileAnswer, FileCommand, HeldFile, Holder, LeftFile, Resource, Sign, Tick, Ticket,
};
use tenure_gate::git;
use tenure_gate::paths::FileKey;

use super::local::Local;
use super::read::{absolute, strings};
use super::speaker::{Speaker, Spoken};
use super::{apart, ask, blame, contents, liveness, targets, view, violations, watching};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::ManifestBody;
use crate::http::fields::Fields;
use crate::http::refusal::unexpected;

/// The most files in one request.
const MOST: usize = 1_000;
/// How often the names of files may change under the question before it is given up.
const MOST_ROUNDS: usize = 8;

struct Asked {
    spoken: Spoken,
    cwd: PathBuf,
    paths: Vec<String>,
    whole: bool,
}

/// Ask whether an agent may change files.
///
/// All of them or none. Where somebody who lives has one, the answer says who, and when the one retry is due: the same asked
/// again then is that retry.
#[utoipa::path(
    post,
    path = "/v1/files/acquire",
    tag = "files",
    operation_id = "acquireFiles",
    request_body = tenure_api::FileAsk,
    responses((status = 200, description = "Whether it may", body = FileVerdict)),
    extensions(("x-codes" = json!(["LOCAL_ONLY", "HOLDER_TAKEN", "TOO_MANY_SESSIONS", "QUEUE_FULL", "NO_SPACE", "HELD_BACK"])))
)]
pub(super) async fn acquire(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: Local,
    ManifestBody(fields): ManifestBody,
) -> Result<Response, Failure> {
    let Asked { spoken, cwd, paths, whole } = read(fields)?;
    let speaker = apart(move || spoken.find(local)).await?;
    // Before anything is got in its name: whoever asks may hang up at any moment.
    watching::watch(&app, &speaker.own.process);
    introduce(&app, &caller, &speaker).await?;
    let session = speaker.own.id.clone();
    let mut rounds = 0;
    let (files, answer, now) = loop {
        let files = look(&app, &cwd, &paths).await?;
        files.iter().try_for_each(|file| caller.require_resource(&file.resource))?;
        let question = |checked| {
            let (session, files) = (speaker.own.clone(), targets::wants(&files)?);
            Ok(FileCommand::Acquire(FileAcquire { session, files, checked }))
        };
        let (answer, now) = liveness::settle(&app, &caller, question).await?;
        if !matches!(answer, FileAnswer::Granted { .. }) || look(&app, &cwd, &paths).await? == files {
            break (files, answer, now);
        }
        // A link was laid or a folder moved while the question was under way: what was got may not be all that leads there.
        rounds += 1;
        if rounds == MOST_ROUNDS {
            return Err(Failure::invalid(
                "paths",
                "change under the question; ask again when nothing moves them",
            ));
        }
    };
    // Once more: it may have ended before its session was known.
    watching::watch(&app, &speaker.own.process);
    if let FileAnswer::Granted { leases, .. } = &answer
        && !leases.is_empty()
    {
        blame::note_before(&app, files.clone()).await;
    }
    let verdict = match answer {
        FileAnswer::Granted { left, .. } => granted(&app, &session, files, left, whole, now).await?,
        FileAnswer::Wait { held, until } => waits(&app, &session, held, until, now).await?,
        FileAnswer::Blocked { held, report } => blocked(&app, &session, held, report, now).await?,
        _ => return Err(unexpected()),
    };
    Ok(json(StatusCode::OK, &if_only_warned(&app, &session, verdict)))
}

/// Sessions above the one that speaks are known before it.
pub(super) async fn introduce(app: &Arc<App>, caller: &Caller, speaker: &Speaker) -> Result<(), Failure> {
    for session in &speaker.above {
        if app.registrar.read(|state| state.file_session(&session.id).is_none()) {
            let hear = FileCommand::Hear { session: session.clone(), sign: Sign::Active };
            ask(app, caller, hear).await?;
            watching::watch(app, &session.process);
        }
    }
    Ok(())
}

async fn look(app: &Arc<App>, cwd: &Path, paths: &[String]) -> Result<Vec<FileKey>, Failure> {
    let (app, cwd, paths) = (app.clone(), cwd.to_owned(), paths.to_owned());
    apart(move || targets::find(&app, &cwd, &paths)).await
}

async fn granted(
    app: &Arc<App>,
    session: &Holder,
    files: Vec<FileKey>,
    left: Vec<(Resource, LeftFile)>,
    whole: bool,
    now: Tick,
) -> Result<FileVerdict, Failure> {
    let mut verdict = empty(app, session, VerdictKind::Granted);
    let dirty = if left.is_empty() { Vec::new() } else { dirty_of(&files, &left).await };
    for (resource, left) in left.iter().filter(|(resource, _)| dirty.contains(resource)) {
        verdict.left_dirty.push(view::left_by(app, resource, left, now));
    }
    if whole {
        let (app, session) = (app.clone(), session.clone());
        let stale = apart(move || {
            let stale = |file: &&FileKey| {
                let content = contents::content_of(&file.absolute);
                let resource = Resource::parse(&file.resource).ok();
                content.zip(resource).is_some_and(|(content, resource)| {
                    app.files.contents.is_stale(&session, &resource, content)
                })
            };
            Ok(files.iter().filter(stale).map(view::relative).collect::<Vec<_>>())
        });
        verdict.stale = stale.await?;
        if !verdict.stale.is_empty() {
            verdict.verdict = VerdictKind::Stale;
        }
    }
    Ok(verdict)
}

/// Which of those that were left are dirty now. Where git does not say, they may be.
async fn dirty_of(files: &[FileKey], left: &[(Resource, LeftFile)]) -> Vec<Resource> {
    let is_left = |file: &&FileKey| left.iter().any(|(resource, _)| resource.as_str() == file.resource);
    let files: Vec<FileKey> = files.iter().filter(is_left).cloned().collect();
    let looked = tokio::task::spawn_blocking(move || {
        // Git is asked once for each tree: whoever waits for the answer does not wait for as many as there are files.
        let mut trees: BTreeMap<&Path, Vec<&FileKey>> = BTreeMap::new();
        files.iter().for_each(|file| trees.entry(&file.tree.root).or_default().push(file));
        let dirty_in = |(root, files): (&Path, Vec<&FileKey>)| {
            let paths: Vec<PathBuf> = files.iter().map(|file| file.relative.clone()).collect();
            let dirty = git::dirty(root, &paths).unwrap_or(paths);
            let names = files.into_iter().filter(|file| dirty.contains(&file.relative));
            names.filter_map(|file| Resource::parse(&file.resource).ok()).collect::<Vec<_>>()
        };
        trees.into_iter().flat_map(dirty_in).collect()
    });
    looked.await.unwrap_or_default()
}

async fn waits(
    app: &Arc<App>,
    session: &Holder,
    held: Vec<HeldFile>,
    until: Tick,
    now: Tick,
) -> Result<FileVerdict, Failure> {
    let mut verdict = with_held(app, session, VerdictKind::Wait, held, now).await?;
    // Rounded up: who comes back then comes back in time.
    verdict.retry_in_ms = Some(until.since(now).0.div_ceil(1_000));
    Ok(verdict)
}

async fn blocked(
    app: &Arc<App>,
    session: &Holder,
    held: Vec<HeldFile>,
    report: Ticket,
    now: Tick,
) -> Result<FileVerdict, Failure> {
    let mut verdict = with_held(app, session, VerdictKind::Blocked, held, now).await?;
    verdict.report = Some(view::report_id(report));
    Ok(verdict)
}

async fn with_held(
    app: &Arc<App>,
    session: &Holder,
    kind: VerdictKind,
    held: Vec<HeldFile>,
    now: Tick,
) -> Result<FileVerdict, Failure> {
    let (own, circle) = (app.clone(), circle(app, &held));
    let shown = apart(move || {
        Ok(held.iter().map(|held| view::held_by(&own, &held.resource, &held.holder, now)).collect())
    });
    Ok(FileVerdict { held: shown.await?, circle, ..empty(app, session, kind) })
}

/// Who waits for whom, as the tickets of whoever asked say.
fn circle(app: &App, held: &[HeldFile]) -> Vec<String> {
    app.registrar.read(|state| {
        let circle = |held: &HeldFile| {
            let ticket = state.file_ticket(held.ticket)?;
            let circle = ticket.blocked.as_ref().map_or(&ticket.circle, |blocked| &blocked.circle);
            Some(circle.iter().map(|holder| holder.as_str().to_owned()).collect::<Vec<_>>())
        };
        held.iter().filter_map(circle).find(|circle| !circle.is_empty()).unwrap_or_default()
    })
}

fn empty(app: &App, session: &Holder, verdict: VerdictKind) -> FileVerdict {
    FileVerdict {
        verdict,
        holder: session.as_str().to_owned(),
        held: Vec::new(),
        retry_in_ms: None,
        report: None,
        retry_interval_seconds: app.files.settings.retry_ms.div_ceil(1_000),
        circle: Vec::new(),
        left_dirty: Vec::new(),
        stale: Vec::new(),
    }
}

/// Where the gate only warns, whoever is told that somebody else has a file may change it, and that is told too.
fn if_only_warned(app: &Arc<App>, session: &Holder, mut verdict: FileVerdict) -> FileVerdict {
    if !app.files.settings.warn_only || verdict.held.is_empty() {
        return verdict;
    }
    let resources = verdict.held.iter().filter_map(|held| Resource::parse(&held.resource).ok()).collect();
    violations::tell(app, resources, Some(session.clone()), "it was only warned, as configured");
    verdict.verdict = VerdictKind::Granted;
    verdict
}

fn read(mut fields: Fields) -> Result<Asked, Failure> {
    let spoken = fields.within("speaker", Spoken::read)?;
    let cwd = absolute(&fields.text("cwd")?, "cwd")?;
    let paths = strings(&mut fields, "paths", MOST)?;
    let whole = fields.optional_flag("whole")?.unwrap_or(false);
    fields.finish()?;
    if paths.is_empty() {
        return Err(Failure::invalid("paths", "is empty; name at least one file"));
    }
    Ok(Asked { spoken, cwd, paths, whole })
}
