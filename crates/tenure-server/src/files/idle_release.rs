//! Releases the files of sessions that have been idle since the end of their turn.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_core::kernel::{
    Command, Fence, FileCommand, FileSession, FileSessionEnd, Holder, KernelState, ProcessId,
    RecordedProcess, Resource, Tick,
};
use tenure_host::process;
use tenure_host::process::open_for_writing;
use tokio::sync::{Notify, RwLock, RwLockWriteGuard};

use super::{FileEventListener, FilesApi, liveness};
use crate::app::App;

/// How often is looked again at what could not be let go of yet.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// The longest sleep: the clock that counts goes on while the machine sleeps, and this one does not.
const MAX_SLEEP: Duration = Duration::from_secs(5);

/// Longer than it takes from a guard's yes until the file is open.
const ADMISSION_TIME: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(super) struct IdleRelease(Notify);

impl IdleRelease {
    pub(super) fn wake(&self) {
        self.0.notify_one();
    }
}

/// Runs until the server stops.
pub(crate) async fn run(app: Arc<App>) {
    tokio::select! {
        () = release_loop(&app) => {}
        () = app.wait_for_stop() => {}
    }
}

async fn release_loop(app: &Arc<App>) {
    loop {
        liveness::watch_all(app);
        end_finished_subagents(app).await;
        let now = app.registrar.now();
        let idle = app.registrar.read(|state| {
            let idle = state
                .file_sessions()
                .filter_map(|session| Some((session.id.clone(), session.turn_ended_at?)));
            let holds = |id: &Holder| state.leases_of_holder(id).next().is_some();
            idle.filter(|(id, _)| holds(id))
                .map(|(id, at)| (id, at, at.saturating_add(state.limits().file_idle_timeout)))
                .collect::<Vec<_>>()
        });
        let mut next = MAX_SLEEP;
        for (session, turn_ended_at, due) in idle {
            if due > now {
                next = next.min(Duration::from_micros(due.since(now).0));
            } else if !release_idle(app, session, turn_ended_at).await {
                next = next.min(RETRY_DELAY);
            }
        }
        let _ = tokio::time::timeout(next, app.files.idle_release.0.notified()).await;
    }
}

/// A turn ends after its subagents. Where there was no room to hand up what they have, that is done as soon as there is; until
/// then nobody's timer runs for it.
async fn end_finished_subagents(app: &Arc<App>) {
    let late: Vec<Holder> = app.registrar.read(|state| {
        let is_late = |session: &&FileSession| {
            let parent = session.parent.as_ref().and_then(|parent| state.file_session(parent));
            let ended_at = parent.and_then(|parent| parent.turn_ended_at);
            ended_at.is_some_and(|ended_at| session.seen_at <= ended_at)
        };
        state.file_sessions().filter(is_late).map(|session| session.id.clone()).collect()
    });
    if !late.is_empty() {
        liveness::end(app, late, FileSessionEnd::TransferredToParent, "the turn of its session is over")
            .await;
    }
}

async fn release_idle(app: &Arc<App>, session: Holder, turn_ended_at: Tick) -> bool {
    let turns = process_locks_of(app, std::slice::from_ref(&session));
    let _turns = lock_all(&turns).await;
    invalidate_grants(app, std::slice::from_ref(&session)).await;
    let looked = {
        let (app, session) = (app.clone(), session.clone());
        tokio::task::spawn_blocking(move || resources_open_for_writing(&app, &session))
    };
    let Ok(keep) = looked.await else { return false };
    let keeps_all = app
        .registrar
        .read(|state| state.leases_of_holder(&session).all(|lease| keep.contains(lease.resource)));
    if keeps_all {
        return false;
    }
    super::blame::attribute_held_files(app, &session).await;
    let is_empty = keep.is_empty();
    let command = FileCommand::ReleaseIdle { session, turn_ended_at, keep };
    // A refusal means that something was heard since; then there is nothing to do.
    let _ = app.registrar.submit(Command::File(Box::new(command))).await;
    is_empty
}

/// The turns of the processes of these sessions, each once and always in the same order.
pub(super) fn process_locks_of(app: &App, sessions: &[Holder]) -> Vec<Arc<RwLock<()>>> {
    processes_of(app, sessions).iter().map(|process| app.files.process_locks.lock_of(process)).collect()
}

/// Nobody of these asks until that is dropped.
pub(super) async fn lock_all(turns: &[Arc<RwLock<()>>]) -> Vec<RwLockWriteGuard<'_, ()>> {
    let mut had = Vec::with_capacity(turns.len());
    for turn in turns {
        had.push(turn.write().await);
    }
    had
}

fn processes_of(app: &App, sessions: &[Holder]) -> BTreeSet<RecordedProcess> {
    app.registrar.read(|state| {
        let process = |id: &Holder| state.file_session(id).map(|session| session.process.clone());
        sessions.iter().filter_map(process).collect()
    })
}

/// Nobody relies any longer on what these sessions have, and what was let through a moment before is open by now: so what
/// is looked for next is found. Nothing is waited for where no guard is.
pub(super) async fn invalidate_grants(app: &App, sessions: &[Holder]) {
    let processes = processes_of(app, sessions);
    let relied_on: Vec<_> =
        processes.iter().filter(|process| app.files.grant_generations.is_tracked(process)).collect();
    relied_on.iter().for_each(|process| app.files.grant_generations.invalidate(process));
    if !relied_on.is_empty() {
        tokio::time::sleep(ADMISSION_TIME).await;
    }
}

/// What the process of a session, or one that it started, still has open for writing.
pub(super) fn resources_open_for_writing(app: &App, session: &Holder) -> Vec<Resource> {
    let found = app.registrar.read(|state: &KernelState| {
        let process = state.file_session(session)?.process.id()?;
        let held: Vec<Resource> =
            state.leases_of_holder(session).map(|lease| lease.resource.clone()).collect();
        Some((process, held))
    });
    let Some((process, held)) = found else { return Vec::new() };
    let known: Vec<_> =
        held.iter().filter_map(|name| Some((FilesApi::identity_of(app, name)?, name))).collect();
    let identities: Vec<_> = known.iter().map(|(identity, _)| *identity).collect();
    // What goes on in the background of a guard is no longer below the agent.
    let guards = app.files.guards.guards_of(&process);
    let mut open = open_for_writing(&process, &identities);
    for guard in guards {
        let more = open_for_writing(&guard, &identities);
        open.iter_mut().zip(more).for_each(|(open, more)| *open |= more);
    }
    let mut keep: Vec<Resource> =
        known.iter().zip(open).filter(|(_, open)| *open).map(|((_, name), _)| (*name).clone()).collect();
    if !keep.is_empty() {
        // Further names of files are nobody's path; which of them belong to these is not looked for.
        keep.extend(held.iter().filter(|name| FilesApi::path_of(app, name).is_none()).cloned());
    }
    keep
}

/// Those who ask share a turn; whoever lets go has one alone.
#[derive(Default)]
pub(super) struct ProcessLocks(Mutex<HashMap<RecordedProcess, Arc<RwLock<()>>>>);

impl ProcessLocks {
    pub(super) fn lock_of(&self, process: &RecordedProcess) -> Arc<RwLock<()>> {
        self.0.lock().entry(process.clone()).or_default().clone()
    }

    pub(super) fn forget(&self, process: &RecordedProcess) {
        self.0.lock().remove(process);
    }
}

/// The session that a hook spoke for last, of each process. In memory only: the ledger knows it to the second.
#[derive(Default)]
pub(super) struct LastActivity(Mutex<HashMap<RecordedProcess, Holder>>);

impl LastActivity {
    /// A hook of this process spoke for a session. Says whether it may have spoken for another one before.
    pub(super) fn record(&self, process: &RecordedProcess, session: &Holder) -> bool {
        let mut sessions = self.0.lock();
        let before = sessions.insert(process.clone(), session.clone());
        before.is_none_or(|before| before != *session)
    }

    pub(super) fn forget(&self, process: &RecordedProcess) {
        self.0.lock().remove(process);
    }
}

/// Notes that a hook spoke for a session. What guards of its process were told counts for the session before.
pub(super) fn record_activity(app: &App, process: &RecordedProcess, session: &Holder) {
    if app.files.last_activity.record(process, session) {
        app.files.grant_generations.invalidate(process);
    }
}

/// The session of this process that lives and was heard of last.
pub(super) fn last_session(app: &App, process: &ProcessId) -> Option<FileSession> {
    let noted = app.files.last_activity.0.lock().get(&(*process).into()).cloned();
    app.registrar.read(|state| {
        if let Some(session) = noted.and_then(|id| state.file_session(&id)) {
            return Some(session.clone());
        }
        state
            .file_sessions()
            .filter(|session| is_in_process(session, process))
            .max_by_key(|session| session.seen_at)
            .cloned()
    })
}

/// The session in whose name a process does something: of the nearest agent above it the one that it names, or of which something
/// was heard last. Nobody, if no agent that is known is above it. `line` is the process and all above it.
pub(super) fn find_session(app: &App, line: &[ProcessId], hint: Option<&str>) -> Option<Holder> {
    let sessions: Vec<FileSession> = app.registrar.read(|state| state.file_sessions().cloned().collect());
    for above in line {
        let is_its = |session: &&FileSession| session.parent.is_none() && is_in_process(session, above);
        let found: Vec<&FileSession> = sessions.iter().filter(is_its).collect();
        let named = hint.and_then(|hint| found.iter().find(|session| *session.session == *hint));
        let last = || found.iter().max_by_key(|session| session.seen_at);
        if let Some(session) = named.or_else(last) {
            return Some(session.id.clone());
        }
    }
    None
}

fn is_in_process(session: &FileSession, process: &ProcessId) -> bool {
    session.process.id().is_some_and(|own| own.is_same(process))
}

/// A process and all above it, itself first. It looks at processes.
pub(super) fn ancestry(pid: u32) -> Vec<ProcessId> {
    process::of(pid).ok().into_iter().chain(process::ancestors(pid)).collect()
}

/// The most that is remembered. What is forgotten counts as somebody else's.
const MAX_ENTRIES: usize = 100_000;

/// The process whose lease on a file ended last, since the server started.
#[derive(Default)]
pub(super) struct LastHolders(Mutex<HashMap<Resource, RecordedProcess>>);

impl LastHolders {
    fn is(&self, resource: &Resource, process: &RecordedProcess) -> bool {
        self.0.lock().get(resource) == Some(process)
    }
}

impl FileEventListener for LastHolders {
    fn lease_ended(&self, resource: &Resource, session: &FileSession, _: Tick) {
        let mut lasts = self.0.lock();
        if lasts.len() >= MAX_ENTRIES {
            lasts.clear();
        }
        lasts.insert(resource.clone(), session.process.clone());
    }
}

/// Whether somebody else than this process may have changed what these new leases are on, before they were there.
pub(super) fn may_have_changed(app: &App, leases: &[Fence], process: &RecordedProcess) -> bool {
    app.registrar.read(|state| {
        let is_its = |lease: &Fence| {
            state.lease(*lease).is_some_and(|lease| app.files.last_holders.is(lease.resource, process))
        };
        !leases.iter().all(is_its)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use tenure_core::kernel::{FileAcquire, FileRequest, FileSessionActivity};
    use tenure_host::paths::WorkTree;
    use tenure_host::process;

    use super::super::liveness::tests::{record_activity, session, start_server, wait_until_session_ended};
    use super::*;

    #[tokio::test]
    async fn a_subagent_that_outlived_its_turn_is_ended_later() {
        let folder = tempfile::tempdir().unwrap();
        let server = start_server(folder.path()).await;
        let (app, own) = (server.app(), process::own().unwrap());
        record_activity(app, session("claude/one", None, &own), FileSessionActivity::Active).await;
        record_activity(
            app,
            session("claude/one/helper", Some("claude/one"), &own),
            FileSessionActivity::Active,
        )
        .await;
        record_activity(app, session("claude/one", None, &own), FileSessionActivity::TurnEnded).await;
        app.files.idle_release.wake();
        wait_until_session_ended(app, "claude/one/helper").await;
        assert_eq!(app.registrar.read(|state| state.file_sessions().count()), 1);
        server.stop().await.unwrap();
    }

    #[tokio::test]
    async fn a_file_open_in_the_background_of_a_guard_counts_as_open_for_its_agent() {
        let folder = tempfile::tempdir().unwrap();
        let server = start_server(folder.path()).await;
        let app = server.app();
        // This process is the guard, so what the guard has open is not below the agent.
        let mut agent = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (guard, owner) = (process::own().unwrap(), process::of(agent.id()).unwrap());
        app.files.guards.record(&owner, &guard);
        let root = folder.path().to_owned();
        app.files.trees.record(&WorkTree { id: "tree".into(), git_dir: root.join(".git"), root });
        let file = Resource::parse("FILE:tree/a").unwrap();
        let acquire = FileAcquire {
            session: session("claude/one", None, &owner),
            files: vec![FileRequest { resource: file.clone(), aliases: Vec::new(), nonces: Vec::new() }],
            checked: Vec::new(),
            background: true,
        };
        app.registrar.submit(Command::File(Box::new(FileCommand::Acquire(acquire)))).await;
        let _open = File::create(folder.path().join("a")).unwrap();
        let id = Holder::parse("claude/one").unwrap();
        assert_eq!(resources_open_for_writing(app, &id), [file]);
        agent.kill().unwrap();
        agent.wait().unwrap();
        server.stop().await.unwrap();
    }
}
