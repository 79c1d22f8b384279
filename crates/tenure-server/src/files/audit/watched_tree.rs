//! For how long a tree is watched, and its pending changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_api::AuditedWorktree;
use tenure_core::kernel::{Holder, ProcessId, Resource, Tick};
use tenure_host::paths::WorkTree;
use tenure_host::watch::{ChangeKind, TreeChange, TreeWatch, WatchCoverage};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::inspection::{find_violations, find_writers};
use super::violation::ViolationBurst;
use crate::app::App;
use crate::files::audit::report_violations;

/// How often is looked whether a tree is still to be watched, and whether more of it can be by now.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// So long after a change it is judged: by then a file that was only written to be renamed is gone.
const JUDGE_DELAY: Duration = Duration::from_millis(200);
/// The most sessions that are remembered for one tree.
const MAX_SESSIONS: usize = 1_000;

/// A tree in which agents are at work.
pub(super) struct WatchedTree {
    pub(super) tree: WorkTree,
    activity: Mutex<(Tick, BTreeSet<Holder>)>,
    /// How much of it is watched; or why nothing is.
    coverage: Mutex<Result<WatchCoverage, String>>,
    pending: Mutex<PendingChanges>,
    changed: Notify,
}

impl WatchedTree {
    pub(super) fn new(tree: WorkTree, session: &Holder, now: Tick) -> Self {
        Self {
            tree,
            activity: Mutex::new((now, BTreeSet::from([session.clone()]))),
            coverage: Mutex::new(Err("it is still being walked through".to_owned())),
            pending: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// A session is at work in it.
    pub(super) fn record_session(&self, session: &Holder, now: Tick) {
        let (last, sessions) = &mut *self.activity.lock();
        *last = (*last).max(now);
        if sessions.len() < MAX_SESSIONS {
            sessions.insert(session.clone());
        }
    }

    /// When a session was last at work in it, and which have been.
    pub(super) fn last_activity(&self) -> (Tick, BTreeSet<Holder>) {
        self.activity.lock().clone()
    }

    pub(super) fn status(&self) -> AuditedWorktree {
        let beyond = self.pending.lock().dropped;
        let root = self.tree.root.to_string_lossy().into_owned();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        match &*self.coverage.lock() {
            Ok(coverage) => AuditedWorktree {
                root,
                folders: count(coverage.folders),
                unwatched: count(coverage.beyond_limit + coverage.unreadable),
                why: why_not(coverage),
                missed: coverage.missed.saturating_add(beyond),
            },
            Err(why) => {
                AuditedWorktree { root, folders: 0, unwatched: 0, why: Some(why.clone()), missed: beyond }
            }
        }
    }
}

fn why_not(coverage: &WatchCoverage) -> Option<String> {
    let limit = (coverage.beyond_limit > 0).then(|| {
        format!(
            "{} are more than may be watched at once; raise fs.inotify.max_user_watches, or let git ignore what is generated",
            coverage.beyond_limit
        )
    });
    let unreadable =
        (coverage.unreadable > 0).then(|| format!("{} may not be read by the server", coverage.unreadable));
    let both: Vec<String> = limit.into_iter().chain(unreadable).collect();
    (!both.is_empty()).then(|| both.join("; "))
}

/// Watches a tree until nobody needs that any longer, it is gone, or the server stops.
pub(super) async fn run(app: Arc<App>, watched: Arc<WatchedTree>) {
    tokio::select! {
        () = until_unneeded(&app, &watched) => {}
        () = watch(&app, &watched) => {}
        () = app.wait_for_stop() => {}
    }
    super::forget(&app, &watched);
}

async fn until_unneeded(app: &App, watched: &Arc<WatchedTree>) {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        if super::forget_unneeded(app, watched) {
            return;
        }
    }
}

/// Returns when the tree is gone.
async fn watch(app: &Arc<App>, watched: &Arc<WatchedTree>) {
    // Nothing is taken from others who want to watch: where there is no room, it is tried again.
    let _slot = loop {
        match app.files.audit.watch_slots.clone().try_acquire_owned() {
            Ok(permit) => break permit,
            Err(_) => *watched.coverage.lock() = Err("too many other trees are watched at once".to_owned()),
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    };
    let (watch, ready) = loop {
        match open(watched).await {
            Ok(opened) => break opened,
            Err(error) => {
                let why = format!(
                    "the system lets nothing more be watched ({error}); raise fs.inotify.max_user_instances"
                );
                *watched.coverage.lock() = Err(why);
            }
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    };
    tokio::select! {
        () = read_for_ever(watched, watch, ready) => {}
        () = judge_for_ever(app, watched) => {}
    }
}

async fn open(watched: &Arc<WatchedTree>) -> io::Result<(TreeWatch, AsyncFd<OwnedFd>)> {
    let tree = watched.tree.clone();
    let watch =
        tokio::task::spawn_blocking(move || TreeWatch::open(&tree)).await.map_err(io::Error::other)??;
    let ready = readiness_of(watch.as_fd().try_clone_to_owned()?)?;
    *watched.coverage.lock() = Ok(watch.coverage());
    Ok((watch, ready))
}

#[expect(
    deprecated,
    reason = "what could go wrong is a descriptor that is closed or becomes another; one that we own is neither"
)]
fn readiness_of(own: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(own, Interest::READABLE)
}

/// Reads as soon as there is something, whatever is being judged.
async fn read_for_ever(watched: &Arc<WatchedTree>, mut watch: TreeWatch, ready: AsyncFd<OwnedFd>) {
    loop {
        let waited = match tokio::time::timeout(CHECK_INTERVAL, ready.readable()).await {
            Ok(Ok(guard)) => Some(guard),
            Ok(Err(_)) => return,
            Err(_) => None,
        };
        let is_ready = waited.is_some();
        let has_more = watched.coverage.lock().as_ref().is_ok_and(|coverage| coverage.beyond_limit > 0);
        if !is_ready && !has_more {
            continue;
        }
        let read = tokio::task::spawn_blocking(move || {
            if !is_ready {
                // There may be room by now.
                watch.rescan();
            }
            let seen = watch.read();
            (watch, seen)
        });
        let Ok((back, seen)) = read.await else { return };
        watch = back;
        *watched.coverage.lock() = Ok(watch.coverage());
        if let Some(mut guard) = waited
            && seen.is_drained
        {
            guard.clear_ready();
        }
        if !seen.changes.is_empty() {
            watched.pending.lock().add(seen.changes);
            watched.changed.notify_one();
        }
        if seen.is_root_gone {
            return;
        }
    }
}

/// Judges what changed, a moment after it did; who has it open is looked at once.
async fn judge_for_ever(app: &Arc<App>, watched: &Arc<WatchedTree>) {
    let mut burst = ViolationBurst::default();
    loop {
        if watched.pending.lock().is_empty() {
            let changed = watched.changed.notified();
            if burst.has_unreported() {
                let _ = tokio::time::timeout(CHECK_INTERVAL.min(Duration::from_secs(1)), changed).await;
            } else {
                changed.await;
            }
        }
        spawn_blocking(app, watched, |app, watched| find_writers(app, &watched.tree, &watched.pending)).await;
        tokio::time::sleep(JUDGE_DELAY).await;
        let now = app.registrar.now();
        let found = spawn_blocking(app, watched, move |app, watched| {
            let settled = watched.pending.lock().take_previous_rounds();
            find_violations(app, &watched.tree, settled, now)
        });
        // What is found belongs to the next one, if this one is over by now.
        if let Some((last, more)) = burst.finish(now) {
            let detail = format!(
                "files of this tree were changed {more} more times by somebody who had no lease, this one last; that is not told one by one"
            );
            report_violations(app, vec![last], None, detail);
        }
        let mut reported: BTreeMap<_, Vec<Resource>> = BTreeMap::new();
        for (resource, violation) in found.await.unwrap_or_default() {
            let is_new = app.files.audit.reported.is_new(&resource, now);
            if is_new && burst.should_report(&resource, violation.session.as_ref(), now) {
                reported.entry((violation.session, violation.detail)).or_default().push(resource);
            }
        }
        for ((session, detail), resources) in reported {
            report_violations(app, resources, session, detail);
        }
    }
}

async fn spawn_blocking<T: Send + 'static>(
    app: &Arc<App>,
    watched: &Arc<WatchedTree>,
    work: impl FnOnce(&App, &WatchedTree) -> T + Send + 'static,
) -> Option<T> {
    let (app, watched) = (app.clone(), watched.clone());
    tokio::task::spawn_blocking(move || work(&app, &watched)).await.ok()
}

/// The most that waits to be judged. What is beyond is counted.
const MAX_CHANGES: usize = 20_000;
/// The most of those who have one file open that are remembered.
const MAX_WRITERS: usize = 4;

/// Changes by their path, below the root.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    changes: BTreeMap<PathBuf, PendingChange>,
    round: u64,
    /// So many were never judged.
    pub(super) dropped: u64,
}

/// What happened to one name since it was last judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingChange {
    first: ChangeKind,
    pub(super) last: ChangeKind,
    /// Whether git was at work for the whole tree, all the while.
    pub(super) by_git: bool,
    /// Who had it open for writing.
    pub(super) writers: Vec<Arc<ObservedWriter>>,
    round: u64,
    is_uninspected: bool,
}

/// Somebody who had a file open for writing, as it was seen then: it may be gone by now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ObservedWriter {
    pub(super) pid: u32,
    pub(super) name: String,
    /// The process and all above it.
    pub(super) ancestry: Vec<ProcessId>,
    /// Of that, the one that is right below whoever takes in those that have lost their parents: who started it is not known, but that
    /// it was after the one who did.
    pub(super) reparented: Option<ProcessId>,
    /// In whose name it runs, if a session of an agent is known for it.
    pub(super) session: Option<Holder>,
}

impl PendingChange {
    /// Whether it came and went again, and nothing that was there before is lost: a file that somebody wrote to rename it.
    pub(super) fn is_transient(&self) -> bool {
        self.first == ChangeKind::Created && self.last == ChangeKind::Removed
    }
}

impl PendingChanges {
    pub(super) fn add(&mut self, changes: impl IntoIterator<Item = TreeChange>) {
        for TreeChange { path, kind, by_git } in changes {
            if let Some(noted) = self.changes.get_mut(&path) {
                noted.last = kind;
                noted.by_git &= by_git;
                noted.is_uninspected |= noted.writers.is_empty();
            } else if self.changes.len() < MAX_CHANGES {
                let round = self.round;
                let new_change = PendingChange {
                    first: kind,
                    last: kind,
                    by_git,
                    writers: Vec::new(),
                    round,
                    is_uninspected: true,
                };
                self.changes.insert(path, new_change);
            } else {
                self.dropped += 1;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Begins a round: which paths changed since it was last looked who has them open.
    pub(super) fn begin_round(&mut self, max_paths: usize) -> Vec<PathBuf> {
        self.round += 1;
        let new = self.changes.iter_mut().filter(|(_, noted)| noted.is_uninspected).take(max_paths);
        let begin = |(path, noted): (&PathBuf, &mut PendingChange)| {
            noted.is_uninspected = false;
            path.clone()
        };
        new.map(begin).collect()
    }

    /// Somebody has this open for writing.
    pub(super) fn add_writer(&mut self, path: &PathBuf, writer: Arc<ObservedWriter>) {
        if let Some(noted) = self.changes.get_mut(path).filter(|noted| noted.writers.len() < MAX_WRITERS) {
            noted.writers.push(writer);
        }
    }

    /// Takes what was noted before the round began.
    pub(super) fn take_previous_rounds(&mut self) -> Vec<(PathBuf, PendingChange)> {
        let round = self.round;
        self.changes.extract_if(.., |_, noted| noted.round < round).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, kind: ChangeKind, by_git: bool) -> TreeChange {
        TreeChange { path: path.into(), kind, by_git }
    }

    #[test]
    fn a_file_created_and_removed_again_is_transient() {
        let mut pending = PendingChanges::default();
        let changes = [
            ("new", ChangeKind::Created),
            ("new", ChangeKind::Written),
            ("new", ChangeKind::Removed),
            ("old", ChangeKind::Removed),
            ("old", ChangeKind::Created),
            ("old", ChangeKind::Removed),
            ("stays", ChangeKind::Created),
        ];
        pending.add(changes.map(|(path, kind)| change(path, kind, false)));
        pending.begin_round(10);
        let gone: Vec<_> = pending
            .take_previous_rounds()
            .into_iter()
            .map(|(path, noted)| (path, noted.is_transient()))
            .collect();
        assert_eq!(gone, [("new".into(), true), ("old".into(), false), ("stays".into(), false)]);
    }

    #[test]
    fn changes_added_during_a_round_are_judged_in_the_next_one() {
        let mut pending = PendingChanges::default();
        pending.add([change("a", ChangeKind::Written, true), change("b", ChangeKind::Written, true)]);
        assert_eq!(pending.begin_round(10), [PathBuf::from("a"), "b".into()]);
        pending.add([change("b", ChangeKind::Written, false), change("c", ChangeKind::Created, false)]);
        let settled = pending.take_previous_rounds();
        let by_git: Vec<_> = settled.iter().map(|(path, noted)| (&**path, noted.by_git)).collect();
        assert_eq!(by_git, [("a".as_ref(), true), ("b".as_ref(), false)]);
        assert!(!pending.is_empty());
        assert_eq!(pending.begin_round(10), [PathBuf::from("c")]);
        assert_eq!(pending.take_previous_rounds().len(), 1);
        assert!(pending.is_empty());
    }

    #[test]
    fn changes_above_the_limit_are_counted_and_dropped() {
        let mut pending = PendingChanges::default();
        pending
            .add((0..MAX_CHANGES + 7).map(|number| change(&number.to_string(), ChangeKind::Created, false)));
        assert_eq!((pending.changes.len(), pending.dropped), (MAX_CHANGES, 7));
    }
}
