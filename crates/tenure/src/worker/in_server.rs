//! The worker in the process of its server. It starts over where one in a process of its own would end.

use std::sync::Arc;
use std::time::Duration;

use tenure_server::Server;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Asked, Over, Settings, Stop, work};
use crate::message::{complain, tell};

const PAUSE: Duration = Duration::from_secs(1);
/// How long an end in good order takes at the most. After that, the watchdogs end what is left.
const PATIENCE: Duration = Duration::from_secs(10);

/// A worker that runs beside the server.
#[derive(Debug)]
pub struct InServer {
    stop: watch::Sender<bool>,
    working: JoinHandle<()>,
}

impl InServer {
    pub fn start(server: &Server, settings: Settings) -> Self {
        let (stop, told) = watch::channel(false);
        let working = tokio::spawn(again_and_again(Asked::Here(server.office()), Arc::new(settings), told));
        Self { stop, working }
    }

    /// Ends every pipeline and gives everything back.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let mut working = self.working;
        if tokio::time::timeout(PATIENCE, &mut working).await.is_err() {
            tell("tenure: the worker did not end in time; what it holds runs out\n");
            working.abort();
        }
    }
}

async fn again_and_again(asked: Asked, settings: Arc<Settings>, stop: Stop) {
    let tuners = settings.tuners;
    loop {
        let ready = || tell(&format!("tenure: the worker is ready in this process, with tuners: {tuners}\n"));
        match work(asked.clone(), settings.clone(), stop.clone(), ready).await {
            Ok(()) => return,
            Err(Over::GuardLost(why)) => {
                tell(&format!("tenure: the worker lost its guard, and starts over: {why}\n"));
            }
            Err(Over::Refused(problem)) => {
                let (detail, code) = (&problem.detail, problem.code.as_str());
                tell(&format!("tenure: the worker cannot work, and tries again: {detail} ({code})\n"));
            }
            Err(Over::System(error)) => complain("the worker cannot work, and tries again", &error),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
