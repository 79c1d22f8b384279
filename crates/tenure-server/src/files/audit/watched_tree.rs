//! From when to when a tree is watched, and what is read and judged meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_api::AuditedWorktree;
use tenure_core::kernel::{Holder, Resource, Tick};
use tenure_gate::paths::WorkTree;
use tenure_gate::watch::{TreeWatch, WatchCoverage};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::inspection::{find_violations, find_writers};
use super::pending_changes::PendingChanges;
use super::violation_burst::ViolationBurst;
use crate::app::App;
use crate::files::violations::report_violations;

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
