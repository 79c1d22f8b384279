//! Liveness of the holders' processes. A session whose process has exited causes no denial.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, read, write};
use tenure_api::Code;
use tenure_core::kernel::{
    Command, CommandOutcome, FileCommand, FileOutcome, FileSessionEnd, Holder, KernelState, RecordedProcess,
    Tick,
};
use tenure_host::process;
use tenure_host::process::{Liveness, ProcessExitWatch};
use tenure_registrar::Reply;
use tokio::sync::oneshot;

use super::{guards, liveness, submit};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::response::HttpError;

/// How often is asked anew: each time somebody else is in the way, who is looked at once.
const MAX_CHECKS: usize = 64;

/// Looks at each of these sessions now. Those that live are answered; those that do not are over, with what they had.
pub(super) async fn end_dead_sessions(app: &Arc<App>, sessions: &[Holder]) -> Vec<Holder> {
    let processes = app.registrar.read(|state| {
        let process = |id: &Holder| state.file_session(id).map(|session| session.process.clone());
        sessions.iter().filter_map(|id| Some((id.clone(), process(id)?))).collect::<Vec<_>>()
    });
    let looked = tokio::task::spawn_blocking(move || {
        processes.into_iter().map(|(id, process)| (id, is_alive(&process))).collect::<Vec<_>>()
    });
    let looked = looked.await.unwrap_or_default();
    let (living, dead): (Vec<_>, Vec<_>) = looked.into_iter().partition(|(_, is_alive)| *is_alive);
    if !dead.is_empty() {
        let dead: Vec<Holder> = dead.into_iter().map(|(id, _)| id).collect();
        let processes = app.registrar.read(|state| {
            let process = |id: &Holder| state.file_session(id).map(|session| session.process.clone());
            dead.iter().filter_map(process).collect::<BTreeSet<_>>()
        });
        for process in processes {
            guards::wait_until_closed(app, &process, &dead).await;
        }
        end(app, dead, FileSessionEnd::Died, "its process is gone").await;
    }
    living.into_iter().map(|(id, _)| id).collect()
}

/// Asks until it is known of everybody in the way that they live, or that they do not. `question` makes the question, given whose
/// life was just made sure of.
pub(super) async fn execute_with_liveness_checks(
    app: &Arc<App>,
    caller: &Caller,
    command: impl Fn(Vec<Holder>) -> Result<FileCommand, HttpError>,
) -> Result<(FileOutcome, Tick), HttpError> {
    let mut checked: Vec<Holder> = Vec::new();
    for _ in 0..MAX_CHECKS {
        match submit(app, caller, command(checked.clone())?).await? {
            (FileOutcome::CheckRequired { sessions }, _) => {
                checked.extend(end_dead_sessions(app, &sessions).await)
            }
            answered => return Ok(answered),
        }
    }
    let detail = "others get and lose this faster than anybody can be looked at; nothing happened, ask again";
    Err(HttpError::new(Code::Busy, detail))
}

/// Whether the process of a session lives. One that stands still does.
pub(super) fn is_alive(process: &RecordedProcess) -> bool {
    process.id().is_some_and(|process| process::liveness(&process) != Liveness::Dead)
}

/// Ends sessions. Says whether that is in the ledger.
pub(super) async fn end(app: &App, sessions: Vec<Holder>, end: FileSessionEnd, detail: &str) -> bool {
    sessions.iter().for_each(|session| app.files.known_contents.forget(session));
    let command = FileCommand::End { sessions, end, detail: detail.into() };
    let response = app.registrar.submit(Command::File(Box::new(command))).await;
    matches!(response.reply, Reply::Answered { answer: CommandOutcome::File(_), .. })
}

pub(super) fn sessions_by_process(state: &KernelState) -> BTreeMap<RecordedProcess, Vec<Holder>> {
    let mut found: BTreeMap<RecordedProcess, Vec<Holder>> = BTreeMap::new();
    for session in state.file_sessions() {
        found.entry(session.process.clone()).or_default().push(session.id.clone());
    }
    found
}

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
    use tenure_host::process;
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
            parent: parent.map(|parent| Holder::parse(parent).unwrap()),
            agent: "claude".into(),
            session: "one".into(),
            ..FileSessionInfo::new(Holder::parse(id).unwrap(), (*process).into())
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

/// Tells when processes end. The thread ends with this.
#[derive(Default)]
pub(super) struct ProcessExitWatcher(Mutex<Option<Arc<ExitWatcherShared>>>);

struct ExitWatcherShared {
    wake_fd: OwnedFd,
    state: Mutex<ExitWatcherState>,
}

#[derive(Default)]
struct ExitWatcherState {
    new: Vec<WatchEntry>,
    is_closed: bool,
}

struct WatchEntry {
    watch: ProcessExitWatch,
    sender: oneshot::Sender<()>,
}

impl ProcessExitWatcher {
    /// Is told something when the process ends; nothing, if there is no thread for it.
    pub(super) fn watch(&self, watch: ProcessExitWatch) -> Option<oneshot::Receiver<()>> {
        let shared = self.shared()?;
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = shared.state.lock();
            // Nobody would be told by a thread that has ended.
            if state.is_closed {
                return None;
            }
            state.new.push(WatchEntry { watch, sender });
        }
        shared.wake();
        Some(receiver)
    }

    fn shared(&self) -> Option<Arc<ExitWatcherShared>> {
        let mut shared = self.0.lock();
        if shared.is_none() {
            let wake_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
            let created = Arc::new(ExitWatcherShared { wake_fd, state: Mutex::default() });
            let own = created.clone();
            thread::Builder::new().name("deaths".into()).spawn(move || own.listen()).ok()?;
            *shared = Some(created);
        }
        shared.clone()
    }
}

impl Drop for ProcessExitWatcher {
    fn drop(&mut self) {
        if let Some(shared) = self.0.lock().take() {
            shared.state.lock().is_closed = true;
            shared.wake();
        }
    }
}

impl ExitWatcherShared {
    fn wake(&self) {
        // A bell that has been rung so often that it takes no more rings all the same.
        let _ = write(&self.wake_fd, &1u64.to_ne_bytes());
    }

    fn listen(&self) {
        self.watch_all();
        let mut state = self.state.lock();
        state.is_closed = true;
        // Whoever waits is told, and looks for itself.
        state.new.clear();
    }

    fn watch_all(&self) {
        let mut watched: Vec<WatchEntry> = Vec::new();
        loop {
            {
                let mut state = self.state.lock();
                if state.is_closed {
                    return;
                }
                watched.append(&mut state.new);
            }
            let mut descriptors = vec![PollFd::new(&self.wake_fd, PollFlags::IN)];
            let own: Vec<_> = watched.iter().map(|watched| watched.watch.as_fd()).collect();
            descriptors.extend(own.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)));
            match poll(&mut descriptors, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let ended: Vec<bool> = descriptors[1..].iter().map(|found| !found.revents().is_empty()).collect();
            let _ = read(&self.wake_fd, &mut [0u8; 8]);
            let mut ended = ended.into_iter();
            let (exited, rest) = watched.into_iter().partition(|_| ended.next().unwrap_or(false));
            watched = rest;
            let finished: Vec<WatchEntry> = exited;
            for watched in finished {
                let _ = watched.sender.send(());
            }
        }
    }
}

#[cfg(test)]
mod liveness_tests {
    use tenure_host::process;

    use super::*;

    #[tokio::test]
    async fn watch_returns_nothing_after_the_thread_has_ended() {
        let watcher = ProcessExitWatcher::default();
        let own = || ProcessExitWatch::of(&process::own().unwrap()).unwrap();
        let receiver = watcher.watch(own()).unwrap();
        let shared = watcher.shared().unwrap();
        shared.state.lock().is_closed = true;
        shared.wake();
        assert!(receiver.await.is_err(), "it ends without a word, and whoever waits looks for itself");
        assert!(watcher.watch(own()).is_none());
    }
}
