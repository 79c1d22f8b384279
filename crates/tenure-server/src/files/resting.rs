//! Lets go of the files of sessions whose turn is over and of whom nothing is heard.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{Command, FileCommand, FileEnd, FileSession, Holder, Resource, State, Tick};
use tenure_gate::process::open_for_writing;
use tokio::sync::Notify;

use super::{FileFace, identity, liveness, watching};
use crate::app::App;

/// How often is looked again at what could not be let go of yet.
const AGAIN: Duration = Duration::from_millis(500);
/// The longest sleep: the clock that counts goes on while the machine sleeps, and this one does not.
const LONGEST: Duration = Duration::from_secs(5);

/// Wakes whoever lets go.
#[derive(Default)]
pub(super) struct Resting(Notify);

impl Resting {
    /// A turn is over.
    pub(super) fn wake(&self) {
        self.0.notify_one();
    }
}

/// Runs until the server stops.
pub(crate) async fn run(app: Arc<App>) {
    tokio::select! {
        () = let_go_for_ever(&app) => {}
        () = app.stopping() => {}
    }
}

async fn let_go_for_ever(app: &Arc<App>) {
    loop {
        watching::watch_all(app);
        hand_up_late(app).await;
        let now = app.registrar.now();
        let idle = app.registrar.read(|state| {
            let idle = state
                .file_sessions()
                .filter_map(|session| Some((session.id.clone(), session.turn_ended_at?)));
            let holds = |id: &Holder| state.leases_of_holder(id).next().is_some();
            idle.filter(|(id, _)| holds(id))
                .map(|(id, at)| (id, at, at.saturating_add(state.limits().file_idle)))
                .collect::<Vec<_>>()
        });
        let mut next = LONGEST;
        for (session, turn_ended_at, due) in idle {
            if due > now {
                next = next.min(Duration::from_micros(due.since(now).0));
            } else if !rest(app, session, turn_ended_at).await {
                next = next.min(AGAIN);
            }
        }
        let _ = tokio::time::timeout(next, app.files.resting.0.notified()).await;
    }
}

/// A turn ends after its subagents. Where there was no room to hand up what they have, that is done as soon as there is; until
/// then nobody's timer runs for it.
async fn hand_up_late(app: &Arc<App>) {
    let late: Vec<Holder> = app.registrar.read(|state| {
        let is_late = |session: &&FileSession| {
            let parent = session.parent.as_ref().and_then(|parent| state.file_session(parent));
            let ended_at = parent.and_then(|parent| parent.turn_ended_at);
            ended_at.is_some_and(|ended_at| session.seen_at <= ended_at)
        };
        state.file_sessions().filter(is_late).map(|session| session.id.clone()).collect()
    });
    if !late.is_empty() {
        liveness::end(app, late, FileEnd::HandedUp, "the turn of its session is over").await;
    }
}

/// Says whether nothing is left.
async fn rest(app: &Arc<App>, session: Holder, turn_ended_at: Tick) -> bool {
    let looked = {
        let (app, session) = (app.clone(), session.clone());
        tokio::task::spawn_blocking(move || still_open(&app, &session))
    };
    let Ok(keep) = looked.await else { return false };
    let keeps_all = app
        .registrar
        .read(|state| state.leases_of_holder(&session).all(|lease| keep.contains(lease.resource)));
    if keeps_all {
        return false;
    }
    super::blame::note_all_of(app, &session).await;
    let is_empty = keep.is_empty();
    let command = FileCommand::Rest { session, turn_ended_at, keep };
    // A refusal means that something was heard since; then there is nothing to do.
    let _ = app.registrar.ask(Command::File(Box::new(command))).await;
    is_empty
}

/// What the process of a session, or one that it started, still has open for writing.
pub(super) fn still_open(app: &App, session: &Holder) -> Vec<Resource> {
    let found = app.registrar.read(|state: &State| {
        let process = identity::process_in(&state.file_session(session)?.process)?;
        let held: Vec<Resource> =
            state.leases_of_holder(session).map(|lease| lease.resource.clone()).collect();
        Some((process, held))
    });
    let Some((process, held)) = found else { return Vec::new() };
    let identity = |resource: &Resource| {
        let about = fs::metadata(FileFace::path_of(app, resource)?).ok()?;
        Some((about.dev(), about.ino()))
    };
    let known: Vec<_> = held.iter().filter_map(|name| Some((identity(name)?, name))).collect();
    let identities: Vec<_> = known.iter().map(|(identity, _)| *identity).collect();
    let open = open_for_writing(&process, &identities);
    let mut keep: Vec<Resource> =
        known.iter().zip(open).filter(|(_, open)| *open).map(|((_, name), _)| (*name).clone()).collect();
    if !keep.is_empty() {
        // Further names of files are nobody's path; which of them belong to these is not looked for.
        keep.extend(held.iter().filter(|name| FileFace::path_of(app, name).is_none()).cloned());
    }
    keep
}

#[cfg(test)]
mod tests {
    use tenure_core::kernel::Sign;
    use tenure_gate::process::Process;

    use super::super::watching::tests::{hear, session, until_gone};
    use crate::{Server, Settings};

    #[tokio::test]
    async fn a_subagent_that_could_not_be_handed_up_is_as_soon_as_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(Settings::new(folder.path())).await.unwrap();
        let (app, own) = (server.app(), Process::own().unwrap());
        hear(app, session("claude/one", None, &own), Sign::Active).await;
        hear(app, session("claude/one/helper", Some("claude/one"), &own), Sign::Active).await;
        hear(app, session("claude/one", None, &own), Sign::TurnEnded).await;
        app.files.resting.wake();
        until_gone(app, "claude/one/helper").await;
        assert_eq!(app.registrar.read(|state| state.file_sessions().count()), 1);
        server.stop().await.unwrap();
    }
}
