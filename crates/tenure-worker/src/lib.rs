//! The worker of the intents API: takes sessions with their leases, and carries them out.
//!
//! ```text
//! leader ──> cleanup ──> runtime
//! leader            acquires the leader lock
//! cleanup           ends what an earlier worker left behind (orphan_processes), and wipes its sessions
//! runtime           executes what state_machine decides
//! pipeline          the process of one session
//! requests, retry   requests to the server, repeated until there is a response
//! settings          settings, and the template of the pipeline's command
//! ```
//!
//! It runs in the process of the server, or in one of its own; `ServerHandle` is the only difference. Each pipeline
//! runs under a watchdog (`process_supervisor`), so that no pipeline outlives its lease if the worker fails.

mod cleanup;
mod leader;
mod orphan_processes;
mod pipeline;
pub mod process_supervisor;
mod requests;
mod retry;
mod runtime;
mod settings;
mod state_machine;
#[cfg(test)]
mod testing;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tenure_api::{IntentSessionChanges, IntentSessionChangesRequest, Problem};
use tenure_host::stderr::{print_error, print_stderr};
use tenure_server::Server;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::leader::WorkerIdentity;
pub use self::requests::ServerHandle;
use self::requests::WorkerError;
pub use self::retry::ShutdownReceiver;
use self::retry::{retry, wait_for_stop};
use self::runtime::WorkerRuntime;
pub use self::settings::{CommandTemplate, CommandTemplateError, Settings};

/// Why a worker has ended, though nobody told it to.
#[derive(Debug)]
pub enum WorkerExit {
    /// Another one may have the guard.
    LeadershipLost(String),
    /// The server does not let it be the worker.
    Rejected(Box<Problem>),
    /// The system does not give what it needs.
    System(io::Error),
}

impl From<WorkerError> for WorkerExit {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::LeadershipLost(why) | WorkerError::Transient(why) => Self::LeadershipLost(why),
            WorkerError::Held(problem) | WorkerError::Rejected(problem) => Self::Rejected(problem),
        }
    }
}

/// Works until it is told to stop: waits for the guard, cleans up, says that it is ready, and carries out sessions.
/// When it returns, no pipeline is left.
pub async fn run_worker(
    server: ServerHandle,
    settings: Arc<Settings>,
    stop: ShutdownReceiver,
    ready: impl FnOnce(),
) -> Result<(), WorkerExit> {
    let identity = WorkerIdentity::current().map_err(WorkerExit::System)?;
    let begin = async {
        let mut guard = leader::acquire(&server, &identity, settings.ttl_ms).await?;
        let first = active_sessions(&server, guard.fence).await?;
        cleanup::clean_up(&server, &identity, &settings, &mut guard, &first.sessions).await?;
        Ok::<_, WorkerExit>((guard, first))
    };
    let (guard, first) = tokio::select! {
        ready_state = begin => ready_state?,
        () = wait_for_stop(&stop) => return Ok(()),
    };
    ready();
    WorkerRuntime::new(server, settings, guard).run(first, &stop).await
}

/// Every session that goes on, in however many parts the server tells them.
async fn active_sessions(server: &ServerHandle, guard: u64) -> Result<IntentSessionChanges, WorkerExit> {
    let (mut since, mut found) = (0, BTreeMap::new());
    loop {
        let request = IntentSessionChangesRequest { guard, since, wait_ms: None };
        let part = retry!("listening to sessions", server.changed_sessions(&request).await)?;
        // One that changed meanwhile is told again, as it is then.
        found.extend(part.sessions.into_iter().map(|session| (session.session_id.clone(), session)));
        since = part.revision;
        if !part.more {
            break;
        }
    }
    let mut sessions: Vec<_> = found.into_values().filter(|session| session.state != "ENDED").collect();
    sessions.sort_unstable_by_key(|session| session.revision);
    Ok(IntentSessionChanges { revision: since, sessions, more: false })
}

const PAUSE: Duration = Duration::from_secs(1);
/// How long an end in good order takes at the most. After that, the watchdogs end what is left.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A worker that runs beside the server.
#[derive(Debug)]
pub struct EmbeddedWorker {
    stop: watch::Sender<bool>,
    working: JoinHandle<()>,
}

impl EmbeddedWorker {
    pub fn start(server: &Server, settings: Settings) -> Self {
        let (stop, stop_signal) = watch::channel(false);
        let working = tokio::spawn(run_with_restarts(
            ServerHandle::InProcess(server.worker_api()),
            Arc::new(settings),
            stop_signal,
        ));
        Self { stop, working }
    }

    /// Ends every pipeline and gives everything back.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let mut working = self.working;
        if tokio::time::timeout(STOP_TIMEOUT, &mut working).await.is_err() {
            print_stderr("tenure: the worker did not end in time; what it holds runs out\n");
            working.abort();
        }
    }
}

async fn run_with_restarts(handle: ServerHandle, settings: Arc<Settings>, stop: ShutdownReceiver) {
    let tuners = settings.tuners;
    loop {
        let ready =
            || print_stderr(&format!("tenure: the worker is ready in this process, with tuners: {tuners}\n"));
        match run_worker(handle.clone(), settings.clone(), stop.clone(), ready).await {
            Ok(()) => return,
            Err(WorkerExit::LeadershipLost(why)) => {
                print_stderr(&format!("tenure: the worker lost its guard, and starts over: {why}\n"));
            }
            Err(WorkerExit::Rejected(problem)) => {
                let (detail, code) = (&problem.detail, problem.code.as_str());
                print_stderr(&format!(
                    "tenure: the worker cannot work, and tries again: {detail} ({code})\n"
                ));
            }
            Err(WorkerExit::System(error)) => print_error("the worker cannot work, and tries again", &error),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
