//! Lets go of the files of sessions whose turn is over and of whom nothing is heard.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{
    Command, FileCommand, FileSession, FileSessionEnd, Holder, KernelState, RecordedProcess, Resource, Tick,
};
use tenure_gate::process::open_for_writing;
use tokio::sync::{Notify, RwLock, RwLockWriteGuard};

use super::{FilesApi, liveness, watched_processes};
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
        watched_processes::watch_all(app);
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

#[cfg(test)]
mod tests {
    use tenure_core::kernel::FileSessionActivity;
    use tenure_gate::process;

    use super::super::watched_processes::tests::{
        record_activity, session, start_server, wait_until_session_ended,
    };

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
}
