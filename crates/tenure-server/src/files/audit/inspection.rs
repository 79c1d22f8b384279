//! Evidence about a change. It reads the disk and `/proc`, so it runs on a blocking thread.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::kernel::{
    FileSession, Holder, KernelState, ProcessId, RecordedProcess, Resource, Tick, TickDuration,
};
use tenure_host::git;
use tenure_host::paths::{WorkTree, is_temporary_name, resource_of_name};
use tenure_host::process::{adopts_reparented_children, start_time, writers_of};
use tenure_host::watch::ChangeKind;

use super::violation::{ChangeEvidence, Violation, WriterCandidate, WriterOrigin, find_violation};
use super::watched_tree::{ObservedWriter, PendingChange, PendingChanges};
use crate::app::App;
use crate::files::{FileEventListener, idle_release, resolve};

/// The most files of which is looked at once who has them open.
const MAX_INSPECTED: usize = 1_000;

/// Begins a round: looks who has what changed since the last one open for writing. At once, because whoever it is may close it in
/// a moment.
pub(super) fn find_writers(app: &App, tree: &WorkTree, pending: &parking_lot::Mutex<PendingChanges>) {
    let paths = pending.lock().begin_round(MAX_INSPECTED);
    let mut files: HashMap<(u64, u64), Vec<PathBuf>> = HashMap::new();
    for path in paths {
        let about = fs::symlink_metadata(tree.root.join(&path)).ok().filter(fs::Metadata::is_file);
        if let Some(about) = about {
            files.entry((about.dev(), about.ino())).or_default().push(path);
        }
    }
    let mut seen: HashMap<u32, Arc<ObservedWriter>> = HashMap::new();
    for writer in writers_of(&files.keys().copied().collect()) {
        let pid = writer.process.pid;
        let found = match seen.get(&pid) {
            Some(found) => found.clone(),
            None => {
                let line = idle_release::ancestry(pid);
                let adopted = line.windows(2).find(|pair| adopts_reparented_children(pair[1].pid));
                let adopted = adopted.map(|pair| pair[0]);
                // Who ended while it was looked at has lost its parents: nobody can say whose it was, and nobody is accused.
                if start_time(pid) != Some(writer.process.started) {
                    continue;
                }
                let session = idle_release::find_session(app, &line, None);
                let found = Arc::new(ObservedWriter {
                    pid,
                    name: writer.name,
                    ancestry: line,
                    reparented: adopted,
                    session,
                });
                seen.insert(pid, found.clone());
                found
            }
        };
        let mut pending = pending.lock();
        for path in files.get(&writer.file).into_iter().flatten() {
            pending.add_writer(path, found.clone());
        }
    }
}

/// What of these changes is a violation, by the name in the ledger.
pub(super) fn find_violations(
    app: &App,
    tree: &WorkTree,
    settled: Vec<(PathBuf, PendingChange)>,
    now: Tick,
) -> Vec<(Resource, Violation)> {
    let mut found = Vec::new();
    for (path, noted) in settled {
        if is_exempt(tree, &path, &noted) {
            continue;
        }
        let Some((resource, owner)) = owner_of(app, tree, &path, noted.last, now) else { continue };
        let writers = noted.writers.iter().map(|writer| suspect(app, writer, owner.as_ref())).collect();
        let facts =
            ChangeEvidence { kind: noted.last, has_owner: owner.is_some(), by_git: noted.by_git, writers };
        if let Some(violation) = find_violation(&facts) {
            found.push((path, resource, violation));
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    // Asked last, and once: git is a process of its own. Where it does not say, nothing is ignored.
    let paths: Vec<PathBuf> = found.iter().map(|(path, ..)| path.clone()).collect();
    let ignored: HashSet<PathBuf> =
        git::ignored_paths(&tree.root, &paths).unwrap_or_default().into_iter().collect();
    // What git ignores is no session's, unless one holds it.
    let is_held = |resource: &Resource| app.registrar.read(|state| state.file_lease(resource).is_some());
    let reported = found.into_iter().filter(|(path, name, _)| !ignored.contains(path) || is_held(name));
    reported.map(|(_, resource, violation)| (resource, violation)).collect()
}

/// What need not be looked at: temporary files, what left no trace, folders, other trees. And what git did while nobody was seen:
/// either nobody has it, or whoever has it is taken to have done it.
fn is_exempt(tree: &WorkTree, path: &Path, noted: &PendingChange) -> bool {
    let is_temporary = path.file_name().is_some_and(|name| {
        let beside = |other: &OsStr| tree.root.join(path).with_file_name(other);
        is_temporary_name(name, |other| beside(other).symlink_metadata().is_ok())
    });
    let is_folder = || fs::symlink_metadata(tree.root.join(path)).is_ok_and(|about| about.is_dir());
    // Made a tree of its own since its folder is watched.
    let mut above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    let mut is_elsewhere = || above.any(|above| tree.root.join(above).join(".git").exists());
    let is_gits = noted.by_git && noted.writers.is_empty();
    is_temporary || is_gits || noted.is_transient() || is_folder() || is_elsewhere()
}

/// The name in the ledger of what changed, and the process of its owner, or of the one a moment ago. Nothing if it is no file of
/// a tree.
fn owner_of(
    app: &App,
    tree: &WorkTree,
    path: &Path,
    kind: ChangeKind,
    now: Tick,
) -> Option<(Resource, Option<RecordedProcess>)> {
    let whole = tree.root.join(path);
    let about = fs::symlink_metadata(&whole).ok();
    // A name that is gone, or a link, is changed itself, and not what it leads to.
    let is_itself = about.is_none_or(|about| about.is_symlink());
    let file = if is_itself { None } else { resolve::resolve_path(app, &whole).ok().flatten() };
    let names = match file {
        Some(file) => resolve::names(&file).ok()?,
        None => vec![Resource::parse(&resource_of_name(tree, path)).ok()?],
    };
    let ended = &app.files.audit.recently_ended;
    let owner = if kind == ChangeKind::FolderMovedOut {
        let prefix = format!("{}/", names.first()?.as_str());
        let held = app.registrar.read(|state| {
            let mut held = state.file_sessions().flat_map(|session| state.leases_of_holder(&session.id));
            let below = held.find(|lease| lease.resource.as_str().starts_with(&prefix))?;
            Some(process_of(state, below.holder))
        });
        held.or_else(|| ended.last_process_below(&prefix, now))
    } else {
        let held = app.registrar.read(|state| {
            let holder = names.iter().find_map(|name| Some(state.file_lease(name)?.2))?;
            Some(process_of(state, holder))
        });
        held.or_else(|| names.iter().find_map(|name| ended.last_process(name, now)))
    };
    Some((names.into_iter().next()?, owner))
}

/// The process of a holder; empty if it is no session.
fn process_of(state: &KernelState, holder: &Holder) -> RecordedProcess {
    state.file_session(holder).map(|session| session.process.clone()).unwrap_or_default()
}

fn suspect(app: &App, writer: &ObservedWriter, owner: Option<&RecordedProcess>) -> WriterCandidate {
    let is_above = |process: &ProcessId| writer.ancestry.iter().any(|above| above.is_same(process));
    let origin = match owner.map(RecordedProcess::id) {
        // What goes on in the background of a guard is no longer below its owner.
        Some(Some(process))
            if is_above(&process) || app.files.guards.guards_of(&process).iter().any(is_above) =>
        {
            WriterOrigin::Owner
        }
        // Who left its owner's side (`setsid`, `nohup … &`) cannot be told from somebody else's; but it began after its owner did.
        Some(Some(process)) if writer.session.is_none() && may_be_orphan_of(writer, &process) => {
            WriterOrigin::Unknown
        }
        // Nobody can be told from somebody who is not known.
        Some(None) => WriterOrigin::Owner,
        Some(Some(_)) | None => WriterOrigin::Other,
    };
    let ObservedWriter { pid, name, session, .. } = writer;
    WriterCandidate { pid: *pid, name: name.clone(), session: session.clone(), origin }
}

fn may_be_orphan_of(writer: &ObservedWriter, owner: &ProcessId) -> bool {
    writer
        .reparented
        .as_ref()
        .is_some_and(|adopted| adopted.boot == owner.boot && adopted.started >= owner.started)
}

/// So long a lease explains what is seen after its end.
const RETENTION: TickDuration = TickDuration::from_secs(5);
/// The most that are remembered. What is forgotten explains nothing.
const MAX_ENTRIES: usize = 20_000;

/// Leases that ended, by their file: when, and whose process had it.
#[derive(Default)]
pub(crate) struct RecentlyEndedLeases(Mutex<HashMap<Resource, (Tick, RecordedProcess)>>);

impl RecentlyEndedLeases {
    /// The process that had this a moment ago.
    pub(super) fn last_process(&self, resource: &Resource, now: Tick) -> Option<RecordedProcess> {
        let ended = self.0.lock();
        ended.get(resource).filter(|(at, _)| now.since(*at) < RETENTION).map(|(_, process)| process.clone())
    }

    /// A process that had something below this folder a moment ago.
    pub(super) fn last_process_below(&self, prefix: &str, now: Tick) -> Option<RecordedProcess> {
        let ended = self.0.lock();
        let mut below = ended.iter().filter(|(resource, _)| resource.as_str().starts_with(prefix));
        below.find(|(_, (at, _))| now.since(*at) < RETENTION).map(|(_, (_, process))| process.clone())
    }

    fn record(&self, resource: &Resource, process: &RecordedProcess, at: Tick) {
        let mut ended = self.0.lock();
        if ended.len() >= MAX_ENTRIES {
            ended.retain(|_, (before, _)| at.since(*before) < RETENTION);
        }
        if ended.len() < MAX_ENTRIES {
            ended.insert(resource.clone(), (at, process.clone()));
        }
    }
}

impl FileEventListener for RecentlyEndedLeases {
    fn lease_ended(&self, resource: &Resource, session: &FileSession, at: Tick) {
        self.record(resource, &session.process, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> RecordedProcess {
        RecordedProcess::parse("one").unwrap()
    }

    fn at(seconds: u64) -> Tick {
        Tick(TickDuration::from_secs(seconds).0)
    }

    #[test]
    fn a_recently_ended_lease_is_known_until_its_retention_ends() {
        let (ended, file) = (RecentlyEndedLeases::default(), Resource::parse("FILE:t/a/b").unwrap());
        assert_eq!(ended.last_process(&file, at(0)), None);
        ended.record(&file, &one(), at(10));
        assert_eq!(ended.last_process(&file, at(12)), Some(one()));
        assert_eq!(ended.last_process_below("FILE:t/a/", at(12)), Some(one()));
        assert_eq!(ended.last_process_below("FILE:t/b/", at(12)), None);
        assert_eq!(
            (ended.last_process(&file, at(15)), ended.last_process_below("FILE:t/a/", at(15))),
            (None, None)
        );
    }

    #[test]
    fn entries_are_bounded_and_expired_ones_are_replaced() {
        let ended = RecentlyEndedLeases::default();
        let name = |number: usize| Resource::parse(&format!("FILE:t/{number}")).unwrap();
        (0..MAX_ENTRIES + 5).for_each(|number| ended.record(&name(number), &one(), at(1)));
        assert_eq!(ended.0.lock().len(), MAX_ENTRIES);
        assert_eq!(ended.last_process(&name(MAX_ENTRIES), at(1)), None);
        ended.record(&name(MAX_ENTRIES), &one(), at(100));
        assert_eq!(ended.0.lock().len(), 1);
        assert!(ended.last_process(&name(MAX_ENTRIES), at(100)).is_some());
    }
}
