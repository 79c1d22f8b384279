//! The kernel's decision as a response.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::OFlags;
use tenure_api::{FileVerdict, FileVerdictKind};
use tenure_core::kernel::{
    FileOutcome, HeldFile, Holder, RecordedProcess, Resource, Tick, Ticket, UncommittedFile,
};
use tenure_host::git;
use tenure_host::paths::FileKey;

use super::idle_release::may_have_changed;
use super::{audit, spawn_blocking, view};
use crate::app::App;
use crate::http::response::{HttpError, unexpected};

/// What is said to a session that asked for these files at `now`; `whole` if it would replace their content.
pub(super) async fn file_verdict(
    app: &Arc<App>,
    (session, process): (&Holder, &RecordedProcess),
    files: Vec<FileKey>,
    whole: bool,
    (answer, now): (FileOutcome, Tick),
) -> Result<FileVerdict, HttpError> {
    let verdict = match answer {
        FileOutcome::Granted { leases, uncommitted } => {
            let newly = may_have_changed(app, &leases, process);
            FileVerdict { newly, ..granted(app, session, files, uncommitted, whole, now).await? }
        }
        FileOutcome::Wait { held, until } => wait_verdict(app, session, held, until, now).await?,
        FileOutcome::Blocked { held, report } => blocked(app, session, held, report, now).await?,
        _ => return Err(unexpected()),
    };
    Ok(apply_warn_only(app, session, verdict))
}

async fn granted(
    app: &Arc<App>,
    session: &Holder,
    files: Vec<FileKey>,
    uncommitted: Vec<(Resource, UncommittedFile)>,
    whole: bool,
    now: Tick,
) -> Result<FileVerdict, HttpError> {
    let mut verdict = empty(app, session, FileVerdictKind::Granted);
    let dirty = if uncommitted.is_empty() { Vec::new() } else { dirty_of(&files, &uncommitted).await };
    for (resource, uncommitted) in uncommitted.iter().filter(|(resource, _)| dirty.contains(resource)) {
        verdict.left_dirty.push(view::uncommitted_file(app, resource, uncommitted, now));
    }
    if whole {
        let (app, session) = (app.clone(), session.clone());
        let stale = spawn_blocking(move || {
            let stale = |file: &&FileKey| {
                let content = hash_file(&file.absolute);
                let resource = Resource::parse(&file.resource).ok();
                content.zip(resource).is_some_and(|(content, resource)| {
                    app.files.known_contents.is_stale(&session, &resource, content)
                })
            };
            Ok(files.iter().filter(stale).map(view::relative).collect::<Vec<_>>())
        });
        verdict.stale = stale.await?;
        if !verdict.stale.is_empty() {
            verdict.verdict = FileVerdictKind::Stale;
        }
    }
    Ok(verdict)
}

/// Which of those that were left are dirty now. Where git does not say, they may be.
async fn dirty_of(files: &[FileKey], uncommitted: &[(Resource, UncommittedFile)]) -> Vec<Resource> {
    let is_uncommitted =
        |file: &&FileKey| uncommitted.iter().any(|(resource, _)| resource.as_str() == file.resource);
    let files: Vec<FileKey> = files.iter().filter(is_uncommitted).cloned().collect();
    let looked = tokio::task::spawn_blocking(move || {
        // Git is asked once for each tree: whoever waits for the answer does not wait for as many as there are files.
        let mut trees: BTreeMap<&Path, Vec<&FileKey>> = BTreeMap::new();
        files.iter().for_each(|file| trees.entry(&file.tree.root).or_default().push(file));
        let dirty_in = |(root, files): (&Path, Vec<&FileKey>)| {
            let paths: Vec<PathBuf> = files.iter().map(|file| file.relative.clone()).collect();
            let dirty = git::dirty_paths(root, &paths).unwrap_or(paths);
            let names = files.into_iter().filter(|file| dirty.contains(&file.relative));
            names.filter_map(|file| Resource::parse(&file.resource).ok()).collect::<Vec<_>>()
        };
        trees.into_iter().flat_map(dirty_in).collect()
    });
    looked.await.unwrap_or_default()
}

async fn wait_verdict(
    app: &Arc<App>,
    session: &Holder,
    held: Vec<HeldFile>,
    until: Tick,
    now: Tick,
) -> Result<FileVerdict, HttpError> {
    let mut verdict = with_held(app, session, FileVerdictKind::Wait, held, now).await?;
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
) -> Result<FileVerdict, HttpError> {
    let mut verdict = with_held(app, session, FileVerdictKind::Blocked, held, now).await?;
    verdict.report = Some(view::report_id(report));
    Ok(verdict)
}

async fn with_held(
    app: &Arc<App>,
    session: &Holder,
    kind: FileVerdictKind,
    held: Vec<HeldFile>,
    now: Tick,
) -> Result<FileVerdict, HttpError> {
    let (own, circle) = (app.clone(), wait_cycle(app, &held));
    let shown = spawn_blocking(move || {
        Ok(held.iter().map(|held| view::held_file_view(&own, &held.resource, &held.holder, now)).collect())
    });
    Ok(FileVerdict { held: shown.await?, circle, ..empty(app, session, kind) })
}

/// Who waits for whom, as the tickets of whoever asked say.
fn wait_cycle(app: &App, held: &[HeldFile]) -> Vec<String> {
    app.registrar.read(|state| {
        let circle = |held: &HeldFile| {
            let ticket = state.retry_ticket(held.ticket)?;
            let circle = ticket.blocked.as_ref().map_or(&ticket.cycle, |blocked| &blocked.cycle);
            Some(circle.iter().map(|holder| holder.as_str().to_owned()).collect::<Vec<_>>())
        };
        held.iter().filter_map(circle).find(|circle| !circle.is_empty()).unwrap_or_default()
    })
}

fn empty(app: &App, session: &Holder, verdict: FileVerdictKind) -> FileVerdict {
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
        newly: false,
        standing: None,
    }
}

/// Where the gate only warns, whoever is told that somebody else has a file may change it, and that is told too.
fn apply_warn_only(app: &Arc<App>, session: &Holder, mut verdict: FileVerdict) -> FileVerdict {
    if !app.files.settings.warn_only || verdict.held.is_empty() {
        return verdict;
    }
    let resources = verdict.held.iter().filter_map(|held| Resource::parse(&held.resource).ok()).collect();
    audit::report_violations(app, resources, Some(session.clone()), "it was only warned, as configured");
    verdict.verdict = FileVerdictKind::Granted;
    verdict
}

/// The most that is remembered. What is forgotten is not objected to.
const MAX_ENTRIES: usize = 100_000;
/// Larger files are not looked into.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A file's content, by its hash.
pub(super) type ContentHash = [u8; 32];

/// What each session last read or wrote of each file. In memory only: after a restart nothing is objected to that was read
/// before.
#[derive(Default)]
pub(super) struct KnownContents(Mutex<HashMap<(Holder, Resource), ContentHash>>);

impl KnownContents {
    pub(super) fn record(&self, session: &Holder, resource: &Resource, content: ContentHash) {
        let mut known = self.0.lock();
        if known.len() >= MAX_ENTRIES {
            known.clear();
        }
        known.insert((session.clone(), resource.clone()), content);
    }

    /// Whether a session knows another content than this. It is asked once: the second time it knows.
    pub(super) fn is_stale(&self, session: &Holder, resource: &Resource, content: ContentHash) -> bool {
        let mut known = self.0.lock();
        match known.get_mut(&(session.clone(), resource.clone())) {
            Some(before) if *before != content => {
                *before = content;
                true
            }
            _ => false,
        }
    }

    pub(super) fn forget(&self, session: &Holder) {
        let mut known = self.0.lock();
        known.retain(|(holder, _), _| holder != session);
    }
}

/// Opens a file to be read. Nothing for what is none, or is larger than that. Whoever opens a pipe would wait for somebody to
/// write into it, perhaps for ever.
pub(super) fn open(path: &Path, max_bytes: u64) -> Option<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let about = file.metadata().ok()?;
    (about.is_file() && about.len() <= max_bytes).then_some(file)
}

/// What a file holds now; nothing if that cannot be said, or it is too large. It reads the disk.
pub(super) fn hash_file(path: &Path) -> Option<ContentHash> {
    let mut file = open(path, MAX_FILE_BYTES)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(*hasher.finalize().as_bytes()),
            count => {
                hasher.update(&buffer[..count]);
            }
        }
    }
}
