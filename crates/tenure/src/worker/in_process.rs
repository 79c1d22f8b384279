//! The worker in the process of its server. It starts over where one in a process of its own would end.

use std::sync::Arc;
use std::time::Duration;

use tenure_server::Server;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{ServerHandle, Settings, ShutdownReceiver, WorkerExit, run_worker};
use crate::terminal_message::{print_error, print_stderr};

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
