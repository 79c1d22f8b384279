//! From a manifest to its leases: waits, dies, comes back.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use tenure_api::Code;
use tokio::sync::OwnedMutexGuard;

use super::attempt::Engaged;
use super::claim::Claim;
use super::course::{Course, Next};
use super::failure::DeclareError;
use super::identity::Agent;
use super::intent::Intent;
use super::keeping;
use crate::clock::{boot_microseconds, sleep_until};
use crate::error::Error;
use crate::hold::Wait;
use crate::key::random;

/// A claim that will be had: `.await` it.
///
/// An agent that has to wait asks again until its turn has come; one that has to die comes back when it may, with the same
/// priority. Dropping it before it is done ends the attempt, unless the agent has other claims: then the wait ends by itself.
#[must_use = "nothing is asked for before it is awaited"]
pub struct Declaring {
    agent: Agent,
    intents: Vec<Intent>,
    wait: Wait,
    engaged: Option<Engaged>,
}

/// Nobody waits longer than this for the server to hear that an agent does not wait any more.
const LAST_WORD: Duration = Duration::from_secs(5);

impl Declaring {
    pub(super) fn new(agent: Agent, intents: Vec<Intent>) -> Self {
        Self { wait: agent.wait, agent, intents, engaged: None }
    }

    /// For how long to wait and to come back. As long as the agent says, if nobody says so here.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// The attempt goes on.
    pub(super) fn go_on(mut self, engaged: Engaged) -> Self {
        self.engaged = Some(engaged);
        self
    }

    async fn run(mut self) -> Result<Claim, DeclareError> {
        let turn = self.agent.turn.clone().lock_owned().await;
        // Not before: a declaration that is being withdrawn asks whether anything else rests on the attempt.
        let engaged = self.engaged.take().unwrap_or_else(|| self.agent.attempt.engage());
        let leaving = Leaving { agent: self.agent.clone(), rests: Some((engaged, turn)) };
        let ttl = u64::try_from(self.agent.ttl.as_micros()).unwrap_or(u64::MAX);
        let mut course = Course::new(self.wait, ttl, boot_microseconds());
        let mut was_heard = false;
        loop {
            let sent = boot_microseconds();
            let manifest = self.agent.manifest(&self.intents, course.left(sent));
            let next = match self.agent.client.declare(&manifest).await {
                Ok(verdict) => {
                    was_heard = true;
                    course.heard(verdict, boot_microseconds(), random())
                }
                Err(Error::Problem(problem))
                    if problem.code == Code::PriorityFixed && self.agent.attempt.adopt(&problem) =>
                {
                    continue;
                }
                Err(error) => {
                    was_heard |= matches!(error, Error::Unknown { .. });
                    let next = course.ask_again(boot_microseconds(), random());
                    if !error.passes() || next == Next::GiveUp {
                        leaving.leave(was_heard).await;
                        return Err(error.into());
                    }
                    next
                }
            };
            match next {
                Next::Take(leases) => {
                    if let Some(keeping) = keeping::start(&self.agent, leases, sent).await {
                        leaving.stay();
                        let Self { agent, intents, wait, .. } = self;
                        return Ok(Claim::new(agent, intents, wait, keeping));
                    }
                }
                Next::AskAt(at) => sleep_until(at).await,
                Next::GiveUp => {
                    leaving.leave(true).await;
                    return Err(DeclareError::InTheWay { blocked_by: course.blocked_by });
                }
            }
        }
    }
}

impl IntoFuture for Declaring {
    type Output = Result<Claim, DeclareError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// Ends what the server may know of the declaration, when nobody wants it any more. The next declaration waits for it.
struct Leaving {
    agent: Agent,
    rests: Option<(Engaged, OwnedMutexGuard<()>)>,
}

impl Leaving {
    /// There is a claim: nothing to end.
    fn stay(mut self) {
        self.rests = None;
    }

    /// Says so, if the server may know of it.
    async fn leave(mut self, is_known: bool) {
        let rests = self.rests.take();
        if is_known {
            withdraw(&self.agent).await;
        }
        drop(rests);
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let Some(rests) = self.rests.take() else { return };
        // Without a runtime nobody can be told; the wait and the leases end by themselves.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (agent, going_on) = (self.agent.clone(), self.agent.client.background().begin());
        runtime.spawn(async move {
            withdraw(&agent).await;
            drop((rests, going_on));
        });
    }
}

/// A report is all that ends a wait early, and it ends everything. An agent with other claims lets the wait run out.
async fn withdraw(agent: &Agent) {
    if agent.attempt.is_alone() {
        let _ = tokio::time::timeout(LAST_WORD, agent.report("ABORTED")).await;
    }
}
