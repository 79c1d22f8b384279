//! Waits for the one retry, unless nobody wants the answer any more; and answers whoever wants the hook to end.

use tenure_gate::agent::Agent;
use tenure_gate::hooks::Verdict;
use tenure_gate::process::agent_above;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::agent::denial;
use crate::exit::Gone;
use crate::watched::clock::Timer;

/// What `asking` leads to, or a denial if somebody wants the hook to end before that: a hook that just ended, unanswered,
/// would let the edit happen. It may be the agent, or a person with Ctrl-C.
pub async fn unless_told(asking: impl Future<Output = Verdict>) -> Verdict {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
    let [mut terminate, mut interrupt, mut hangup, mut quit] = kinds.map(|kind| signal(kind).ok());
    tokio::select! {
        biased;
        verdict = asking => verdict,
        () = told(&mut terminate) => denial(TOLD),
        () = told(&mut interrupt) => denial(TOLD),
        () = told(&mut hangup) => denial(TOLD),
        () = told(&mut quit) => denial(TOLD),
    }
}

const TOLD: &str = "the hook was told to end before there was an answer";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    Due,
    /// The agent's process is gone. A hook outlives an agent that is killed, and must not take files for it.
    AgentEnded,
    /// Nobody can say when it is time.
    NoClock,
}

pub struct Wait {
    agent: Gone,
}

impl Wait {
    /// Begins to watch the agent above this process.
    pub fn begin(agent: Agent) -> Self {
        let above = agent_above(std::process::id(), Some(agent)).ok();
        Self { agent: Gone::of(above.as_ref().map(|above| &above.process)) }
    }

    /// Waits until the local clock says `at`.
    pub async fn until(&self, at: u64) -> Woken {
        let Ok(timer) = Timer::new() else { return Woken::NoClock };
        tokio::select! {
            () = self.agent.wait() => Woken::AgentEnded,
            () = timer.wait_until(Some(at)) => Woken::Due,
        }
    }
}

async fn told(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
