//! Being told when an agent's process ends: what it had is free at once.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_core::kernel::{FileSessionEnd, RecordedProcess};
use tenure_gate::process::ProcessExitWatch;

use super::process_exit::ProcessExitWatcher;
use super::{guards, liveness};
use crate::app::App;

/// How often is looked where the system tells nobody.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long to wait before an end that could not be written is told again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct WatchedProcesses {
    processes: Mutex<HashSet<RecordedProcess>>,
    exit_watcher: ProcessExitWatcher,
}

impl WatchedProcesses {
    fn begin(&self, process: &RecordedProcess) -> bool {
        self.processes.lock().insert(process.clone())
    }

    fn finish(&self, process: &RecordedProcess) {
        self.processes.lock().remove(process);
    }
}

/// Watches every process that the ledger knows of. What died while nobody watched is over before anybody is answered.
pub(crate) async fn start(app: &Arc<App>) {
    let known = app.registrar.read(liveness::sessions_by_process);
    for (process, sessions) in known {
        if liveness::is_alive(&process)
            || !liveness::end(
                app,
                sessions,
                FileSessionEnd::Died,
                "its process was gone when the server started",
            )
            .await
        {
            watch(app, &process);
        }
    }
}

/// Watches every process that the ledger knows of and nobody watches: whoever asked may have hung up before it was watched, or
/// its process may have ended just before its session was known.
pub(super) fn watch_all(app: &Arc<App>) {
    let known: BTreeSet<RecordedProcess> =
        app.registrar.read(|state| state.file_sessions().map(|session| session.process.clone()).collect());
    known.iter().for_each(|process| watch(app, process));
}

/// Watches the process of a session, unless it is watched.
pub(super) fn watch(app: &Arc<App>, process: &RecordedProcess) {
    if app.files.watched_processes.begin(process) {
        tokio::spawn(watch_until_exit(app.clone(), process.clone()));
    }
}

async fn watch_until_exit(app: Arc<App>, process: RecordedProcess) {
    let ended = async {
        loop {
            wait_for_exit(&app, &process).await;
            let sessions = app.registrar.read(|state| liveness::sessions_by_process(state).remove(&process));
            let Some(sessions) = sessions else { break };
            guards::wait_until_closed(&app, &process, &sessions).await;
            if liveness::end(&app, sessions, FileSessionEnd::Died, "its process ended").await {
                break;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    };
    tokio::select! {
        () = ended => {}
        () = app.wait_for_stop() => {}
    }
    // Unless the server stops: then it is met again.
    if !liveness::is_alive(&process) {
        guards::forget(&app, &process);
    }
    app.files.watched_processes.finish(&process);
}

/// Returns when a process is dead.
async fn wait_for_exit(app: &App, process: &RecordedProcess) {
    let watch = process.id().and_then(|process| ProcessExitWatch::of(&process));
    if let Some(exited) = watch.and_then(|watch| app.files.watched_processes.exit_watcher.watch(watch)) {
        let _ = exited.await;
    }
    // What nobody may watch is looked for.
    while liveness::is_alive(process) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;
    use std::process::Command as Program;

    use tenure_core::kernel::{
        Command, FileCommand, FileSessionActivity, FileSessionInfo, Holder, ProcessId,
    };
    use tenure_gate::process;
    use tenure_ledger::{LedgerId, MemoryLedger};

    use super::*;
    use crate::{Server, Settings};

    /// A server with its secrets in `folder` and its ledger in memory.
    pub(in crate::files) async fn start_server(folder: &Path) -> Server {
        let ledger = Arc::new(MemoryLedger::new(LedgerId([7; 16])));
        Server::start(Settings::new(folder, ledger)).await.unwrap()
    }

    pub(in crate::files) fn session(id: &str, parent: Option<&str>, process: &ProcessId) -> FileSessionInfo {
        FileSessionInfo {
            id: Holder::parse(id).unwrap(),
            parent: parent.map(|parent| Holder::parse(parent).unwrap()),
            agent: "claude".into(),
            session: "one".into(),
            process: (*process).into(),
            task: None,
        }
    }

    pub(in crate::files) async fn record_activity(
        app: &App,
        session: FileSessionInfo,
        sign: FileSessionActivity,
    ) {
        app.registrar
            .submit(Command::File(Box::new(FileCommand::RecordActivity { session, activity: sign })))
            .await;
    }

    pub(in crate::files) async fn wait_until_session_ended(app: &App, id: &str) {
        let id = Holder::parse(id).unwrap();
        while app.registrar.read(|state| state.file_session(&id).is_some()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    // S4-20, S4-32
    #[tokio::test]
    async fn a_session_registered_after_its_process_died_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let server = start_server(folder.path()).await;
        let app = server.app();
        let mut child = Program::new("sleep").arg("1000").spawn().unwrap();
        let process = process::of(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // As if whoever asked had hung up right after that.
        record_activity(app, session("claude/one", None, &process), FileSessionActivity::Active).await;
        app.files.idle_release.wake();
        wait_until_session_ended(app, "claude/one").await;
        server.stop().await.unwrap();
    }
}
