//! The audit: watches the working trees in which agents are active, and records each change that no lease explains.
//!
//! ```text
//! watched_tree  for how long a tree is watched; its pending changes
//! inspection    evidence: which process has the file open, who holds it or held it recently, whether git ignores it
//! violation     whether a change is a violation, and which of a burst are reported
//! ```
//!
//! It prevents nothing: it covers the changes that no hook and no guard intercepts. If the writer of a held file is unknown,
//! its holder is assumed to be the writer.

mod inspection;
mod violation;
mod watched_tree;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_api::AuditedWorktree;
use tenure_core::kernel::{Command, FileCommand, Holder, Resource, Tick, TickDuration};
use tenure_host::paths::{FileKey, WorkTree, work_tree_of};
use tenure_registrar::Reply;
use tokio::sync::Semaphore;

use self::inspection::RecentlyEndedLeases;
use self::watched_tree::WatchedTree;
use crate::app::App;

/// The most trees that are watched at once: the system gives a user few watches of this kind.
const MAX_WATCHED_TREES: usize = 16;
/// The most trees that are remembered because agents are at work in them.
const MAX_KNOWN_TREES: usize = 1_000;
/// For so long a tree is watched after something was last heard from those at work in it.
const LINGER: TickDuration = TickDuration::from_secs(300);

/// What is watched, and what has to be known to judge.
pub(crate) struct WorkTreeAuditor {
    is_on: bool,
    trees: Mutex<BTreeMap<String, Arc<WatchedTree>>>,
    watch_slots: Arc<Semaphore>,
    /// Which leases ended a moment ago.
    pub(super) recently_ended: Arc<RecentlyEndedLeases>,
    reported: ReportedViolations,
}

impl WorkTreeAuditor {
    pub(super) fn new(is_on: bool) -> Self {
        Self {
            is_on,
            trees: Mutex::default(),
            watch_slots: Arc::new(Semaphore::new(MAX_WATCHED_TREES)),
            recently_ended: Arc::default(),
            reported: ReportedViolations::default(),
        }
    }

    /// Every tree in which agents are at work, and how much of it is watched.
    pub(super) fn watched_trees(&self) -> Vec<AuditedWorktree> {
        let mut trees: Vec<AuditedWorktree> =
            self.trees.lock().values().map(|watched| watched.status()).collect();
        trees.sort_by(|one, other| one.root.cmp(&other.root));
        trees
    }
}

/// Watches the trees of what sessions have. Who had it before the server was stopped is at work in them still.
pub(crate) fn start(app: &Arc<App>) {
    let held: Vec<(Resource, Holder)> = app.registrar.read(|state| {
        let leases = state.file_sessions().flat_map(|session| state.leases_of_holder(&session.id));
        leases.map(|lease| (lease.resource.clone(), lease.holder.clone())).collect()
    });
    if !app.files.audit.is_on || held.is_empty() {
        return;
    }
    let app = app.clone();
    tokio::spawn(async move {
        let own = app.clone();
        let looked = tokio::task::spawn_blocking(move || trees_of(&own, &held));
        for (tree, session) in looked.await.unwrap_or_default() {
            watch_tree(&app, &tree, &session);
        }
    });
}

/// Where these files are, and who has them. It looks at the disk.
fn trees_of(app: &App, held: &[(Resource, Holder)]) -> Vec<(WorkTree, Holder)> {
    let root = |resource: &Resource| app.files.trees.locate(resource)?.root;
    let roots: BTreeSet<(PathBuf, &Holder)> =
        held.iter().filter_map(|(resource, holder)| Some((root(resource)?, holder))).collect();
    let tree = |(root, holder): (PathBuf, &Holder)| Some((work_tree_of(&root).ok()??, holder.clone()));
    roots.into_iter().filter_map(tree).collect()
}

/// A session is at work with these files: their trees are watched from now on.
pub(super) fn watch_files(app: &Arc<App>, session: &Holder, files: &[FileKey]) {
    let mut known: Vec<&WorkTree> = Vec::new();
    for file in files {
        if !known.contains(&&file.tree) {
            known.push(&file.tree);
            watch_tree(app, &file.tree, session);
        }
    }
}

fn watch_tree(app: &Arc<App>, tree: &WorkTree, session: &Holder) {
    let audit = &app.files.audit;
    if !audit.is_on {
        return;
    }
    let now = app.registrar.now();
    let mut trees = audit.trees.lock();
    // One that has moved is watched where it is now.
    if let Some(watched) = trees.get(&tree.id).filter(|watched| watched.tree == *tree) {
        watched.record_session(session, now);
        return;
    }
    if trees.len() >= MAX_KNOWN_TREES {
        return;
    }
    let watched = Arc::new(WatchedTree::new(tree.clone(), session, now));
    trees.insert(tree.id.clone(), watched.clone());
    tokio::spawn(watched_tree::run(app.clone(), watched));
}

/// Forgets a tree that nobody needs any longer to be watched. Says whether it did.
fn forget_unneeded(app: &App, watched: &Arc<WatchedTree>) -> bool {
    let mut trees = app.files.audit.trees.lock();
    if is_needed(app, watched, app.registrar.now()) {
        return false;
    }
    remove(&mut trees, watched);
    true
}

fn forget(app: &App, watched: &Arc<WatchedTree>) {
    remove(&mut app.files.audit.trees.lock(), watched);
}

fn remove(trees: &mut BTreeMap<String, Arc<WatchedTree>>, watched: &Arc<WatchedTree>) {
    let id = &watched.tree.id;
    if trees.get(id).is_some_and(|known| Arc::ptr_eq(known, watched)) {
        trees.remove(id);
    }
}

/// Whether somebody has a file there, or something was heard not long ago from a session that was at work there.
fn is_needed(app: &App, watched: &WatchedTree, now: Tick) -> bool {
    let (last, sessions) = watched.last_activity();
    if now.since(last) < LINGER {
        return true;
    }
    let prefix = format!("FILE:{}/", watched.tree.id);
    app.registrar.read(|state| {
        let is_recent =
            |id: &Holder| state.file_session(id).is_some_and(|session| now.since(session.seen_at) < LINGER);
        let mut held = state.file_sessions().flat_map(|session| state.leases_of_holder(&session.id));
        sessions.iter().any(is_recent) || held.any(|lease| lease.resource.as_str().starts_with(&prefix))
    })
}

/// Within this time, one file is told once.
const DEDUPLICATION_WINDOW: TickDuration = TickDuration::from_secs(5);
const MAX_ENTRIES: usize = 10_000;
/// How often a writer is asked that has no time.
const TRIES: usize = 100;
/// How long it is let be in between.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Writes down that this happened to these files, one after the other, while nobody waits for it. Where there is no room for
/// it, it is not written: there may be thousands, and the room that is left is for the ends of leases.
pub(super) fn report_violations(
    app: &Arc<App>,
    resources: Vec<Resource>,
    session: Option<Holder>,
    detail: impl Into<Arc<str>>,
) {
    if resources.is_empty() {
        return;
    }
    let (app, detail) = (app.clone(), detail.into());
    tokio::spawn(async move {
        for resource in resources {
            let command =
                FileCommand::RecordViolation { resource, session: session.clone(), detail: detail.clone() };
            write_down(&app, Command::File(Box::new(command))).await;
        }
    });
}

async fn write_down(app: &App, command: Command) {
    for _ in 0..TRIES {
        let response = app.registrar.submit(command.clone()).await;
        if !matches!(response.reply, Reply::Busy | Reply::Unavailable) {
            return;
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// When each file was last told.
#[derive(Default)]
pub(super) struct ReportedViolations(Mutex<HashMap<Resource, Tick>>);

impl ReportedViolations {
    /// Whether this is to be told.
    pub(super) fn is_new(&self, resource: &Resource, now: Tick) -> bool {
        let mut reported = self.0.lock();
        if reported.len() >= MAX_ENTRIES {
            reported.retain(|_, at| now.since(*at) < DEDUPLICATION_WINDOW);
        }
        let before = reported.get(resource).copied();
        let is_new = before.is_none_or(|before| now.since(before) >= DEDUPLICATION_WINDOW);
        if is_new && reported.len() < MAX_ENTRIES {
            reported.insert(resource.clone(), now);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_violation_is_reported_again_only_after_the_window() {
        let (reported, file) = (ReportedViolations::default(), Resource::parse("FILE:t/a").expect("a name"));
        let at = |seconds: u64| Tick(TickDuration::from_secs(seconds).0);
        assert!(reported.is_new(&file, at(1)));
        assert!(!reported.is_new(&file, at(2)));
        assert!(reported.is_new(&file, at(7)));
    }
}
