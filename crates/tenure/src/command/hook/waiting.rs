//! Waits for the one retry, unless nobody wants the answer any more.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use tenure_gate::agent::Agent;
use tenure_gate::process::{Watch, agent_above};
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::watched::clock::Timer;

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// It is time.
    Due,
    /// The agent's process is gone. A hook outlives an agent that is killed, and must not take files for it.
    AgentEnded,
    /// Somebody wants the hook to end. Unanswered, the edit would happen.
    Told,
}

/// What can end a wait.
pub struct Wait {
    agent: Option<AsyncFd<OwnedFd>>,
    signals: [Option<Signal>; 3],
}

impl Wait {
    /// Begins to watch the agent above this process, and catches what ends a process.
    pub fn begin(agent: Agent) -> Self {
        let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        Self { agent: watch(agent).ok().flatten(), signals: kinds.map(|kind| signal(kind).ok()) }
    }

    /// Waits until the local clock says `at`.
    pub async fn until(&mut self, at: u64) -> Woken {
        let Ok(timer) = Timer::new() else { return Woken::Told };
        let [terminate, interrupt, hangup] = &mut self.signals;
        tokio::select! {
            () = ends(self.agent.as_ref()) => Woken::AgentEnded,
            () = told(terminate) => Woken::Told,
            () = told(interrupt) => Woken::Told,
            () = told(hangup) => Woken::Told,
            () = timer.wait_until(Some(at)) => Woken::Due,
        }
    }
}

#[expect(
    deprecated,
    reason = "what could go wrong is a descriptor that is closed or becomes another; one that we own is neither"
)]
fn watch(agent: Agent) -> io::Result<Option<AsyncFd<OwnedFd>>> {
    let above = agent_above(std::process::id(), Some(agent))?;
    let watch = Watch::of(&above.process).map(|watch| watch.as_fd().try_clone_to_owned());
    watch.transpose()?.map(AsyncFd::new).transpose()
}

/// Returns when the agent has ended; never, if it cannot be watched.
async fn ends(agent: Option<&AsyncFd<OwnedFd>>) {
    match agent {
        Some(agent) if agent.readable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

async fn told(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
