//! Being told when an agent's process ends: what it had is free at once.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_core::kernel::FileEnd;
use tenure_gate::process::Watch;

use super::deaths::Deaths;
use super::{guards, identity, liveness};
use crate::app::App;

/// How often is looked where the system tells nobody.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long to wait before an end that could not be written is told again.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Watching {
    known: Mutex<HashSet<Arc<str>>>,
    deaths: Deaths,
}

impl Watching {
    fn begins(&self, process: &Arc<str>) -> bool {
        self.known.lock().insert(process.clone())
    }

    fn is_over(&self, process: &Arc<str>) {
        self.known.lock().remove(process);
    }
}

/// Watches every process that the ledger knows of. What died while nobody watched is over before anybody is answered.
pub(crate) async fn start(app: &Arc<App>) {
    let known = app.registrar.read(liveness::by_process);
    for (process, sessions) in known {
        if liveness::lives(&process)
            || !liveness::end(app, sessions, FileEnd::Died, "its process was gone when the server started")
                .await
        {
            watch(app, &process);
        }
    }
}

/// Watches every process that the ledger knows of and nobody watches: whoever asked may have hung up before it was watched, or
/// its process may have ended just before its session was known.
pub(super) fn watch_all(app: &Arc<App>) {
    let known: BTreeSet<Arc<str>> =
        app.registrar.read(|state| state.file_sessions().map(|session| session.process.clone()).collect());
    known.iter().for_each(|process| watch(app, process));
}

/// Watches the process of a session, unless it is watched.
pub(super) fn watch(app: &Arc<App>, process: &Arc<str>) {
    if app.files.watching.begins(process) {
        tokio::spawn(until_its_end(app.clone(), process.clone()));
    }
}

async fn until_its_end(app: Arc<App>, process: Arc<str>) {
    let ended = async {
        loop {
            died(&app, &process).await;
            let sessions = app.registrar.read(|state| liveness::by_process(state).remove(&process));
            let Some(sessions) = sessions else { break };
            guards::settled(&app, &process, &sessions).await;
            if liveness::end(&app, sessions, FileEnd::Died, "its process ended").await {
                break;
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    tokio::select! {
        () = ended => {}
        () = app.stopping() => {}
    }
    // Unless the server stops: then it is met again.
    if !liveness::lives(&process) {
        guards::forget(&app, &process);
    }
    app.files.watching.is_over(&process);
}

/// Returns when a process is dead.
async fn died(app: &App, process: &str) {
    let watch = identity::process_in(process).and_then(|process| Watch::of(&process));
    if let Some(told) = watch.and_then(|watch| app.files.watching.deaths.watch(watch)) {
        let _ = told.await;
    }
    // What nobody may watch is looked for.
    while liveness::lives(process) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::Command as Program;

    use tenure_core::kernel::{Command, FileCommand, Holder, Introduction, Sign};
    use tenure_gate::process::Process;

    use super::*;
    use crate::{Server, Settings};

    pub(in crate::files) fn session(id: &str, parent: Option<&str>, process: &Process) -> Introduction {
        Introduction {
            id: Holder::parse(id).unwrap(),
            parent: parent.map(|parent| Holder::parse(parent).unwrap()),
            agent: "claude".into(),
            session: "one".into(),
            process: identity::text_of(process).into(),
            task: None,
        }
    }

    pub(in crate::files) async fn hear(app: &App, session: Introduction, sign: Sign) {
        app.registrar.ask(Command::File(Box::new(FileCommand::Hear { session, sign }))).await;
    }

    pub(in crate::files) async fn until_gone(app: &App, id: &str) {
        let id = Holder::parse(id).unwrap();
        while app.registrar.read(|state| state.file_session(&id).is_some()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    // S4-20, S4-32
    #[tokio::test]
    async fn a_session_registered_after_its_process_died_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(Settings::new(folder.path())).await.unwrap();
        let app = server.app();
        let mut child = Program::new("sleep").arg("1000").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // As if whoever asked had hung up right after that.
        hear(app, session("claude/one", None, &process), Sign::Active).await;
        app.files.resting.wake();
        until_gone(app, "claude/one").await;
        server.stop().await.unwrap();
    }
}
