//! The audit: working trees in which agents are at work are watched, and a change that no lease explains is written down.
//!
//! ```text
//! watching         from when to when a tree is watched, and what is read
//! pending_changes  what changed and is not judged yet
//! looking          who has it open, by which names it is leased, who has it or had it a moment ago, whether git ignores it
//! violation        what follows from that
//! violation_burst  not more of it than anybody reads
//! ended            which leases ended a moment ago
//! ```
//!
//! It stops nobody: it is what is left where nobody was asked. Where it is not known who changed something that somebody has, that
//! one is taken to have done it.

mod ended_leases;
mod inspection;
mod pending_changes;
mod violation;
mod violation_burst;
mod watched_tree;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_api::AuditedWorktree;
use tenure_core::kernel::{Holder, Resource, Tick, TickDuration};
use tenure_gate::paths::{FileKey, WorkTree, work_tree_of};
use tokio::sync::Semaphore;

use self::ended_leases::RecentlyEndedLeases;
use self::watched_tree::WatchedTree;
use super::violations::ReportedViolations;
use crate::app::App;

/// The most trees that are watched at once: the system gives a user few watches of this kind.
const MAX_WATCHED_TREES: usize = 16;
/// The most trees that are remembered because agents are at work in them.
const MAX_KNOWN_TREES: usize = 1_000;
/// For so long a tree is watched after something was last heard from those at work in it.
const LINGER: TickDuration = TickDuration::from_secs(300);

/// What is watched, and what has to be known to judge.
pub(crate) struct WorkTreeAudit {
    is_on: bool,
    trees: Mutex<BTreeMap<String, Arc<WatchedTree>>>,
    watch_slots: Arc<Semaphore>,
    /// Which leases ended a moment ago.
    pub(super) recently_ended: Arc<RecentlyEndedLeases>,
    reported: ReportedViolations,
}

impl WorkTreeAudit {
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
