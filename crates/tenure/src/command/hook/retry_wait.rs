//! Waits for the one retry, unless nobody wants the answer any more; and answers whoever wants the hook to end.

use tenure_gate::coding_agent::CodingAgent;
use tenure_gate::hooks::HookVerdict;
use tenure_gate::process::ancestor_agent;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::agent::deny;
use crate::exit::AsyncExitWatch;
use crate::process_supervisor::timer::Timer;

/// What `asking` leads to, or a denial if somebody wants the hook to end before that: a hook that just ended, unanswered,
/// would let the edit happen. It may be the agent, or a person with Ctrl-C.
pub async fn deny_on_signal(asking: impl Future<Output = HookVerdict>) -> HookVerdict {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
    let [mut terminate, mut interrupt, mut hangup, mut quit] = kinds.map(|kind| signal(kind).ok());
    tokio::select! {
        biased;
        verdict = asking => verdict,
        () = receive(&mut terminate) => deny(SIGNAL_DENIAL),
        () = receive(&mut interrupt) => deny(SIGNAL_DENIAL),
        () = receive(&mut hangup) => deny(SIGNAL_DENIAL),
        () = receive(&mut quit) => deny(SIGNAL_DENIAL),
    }
}

const SIGNAL_DENIAL: &str = "the hook was told to end before there was an answer";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    Due,
    /// The agent's process is gone. A hook outlives an agent that is killed, and must not take files for it.
    AgentEnded,
    /// Nobody can say when it is time.
    NoClock,
}

pub struct RetryWait {
    agent: AsyncExitWatch,
}

impl RetryWait {
    /// Begins to watch the agent above this process.
    pub fn start(agent: CodingAgent) -> Self {
        let above = ancestor_agent(std::process::id(), Some(agent)).ok();
        Self { agent: AsyncExitWatch::new(above.as_ref().map(|above| &above.process)) }
    }

    /// Waits until the local clock says `at`.
    pub async fn wait_until(&self, at: u64) -> WakeReason {
        let Ok(timer) = Timer::new() else { return WakeReason::NoClock };
        tokio::select! {
            () = self.agent.wait() => WakeReason::AgentEnded,
            () = timer.wait_until(Some(at)) => WakeReason::Due,
        }
    }
}

async fn receive(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
