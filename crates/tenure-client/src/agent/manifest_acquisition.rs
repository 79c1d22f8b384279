//! From a manifest to its leases: waits, aborts and tries again.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_api::{Code, ManifestIntent, ManifestObject, ResourceAccess};
use tokio::sync::OwnedMutexGuard;

use super::held_manifest::HeldManifest;
use super::identity::{Agent, PriorityGuard};
use super::retry::{RetryDecision, RetrySchedule};
use super::{DeclareError, heartbeat_task};
use crate::client::random_u64;
use crate::clock::{boot_microseconds, sleep_until};
use crate::error::Error;
use crate::hold::WaitLimit;

/// A claim that will be had: `.await` it.
///
/// An agent that has to wait asks again until its turn has come; one that has to die comes back when it may, with the same
/// priority. Dropping it before it is done ends the attempt, unless the agent has other claims: then the wait ends by itself.
#[must_use = "nothing is asked for before it is awaited"]
pub struct ManifestAcquisition {
    agent: Agent,
    intents: Vec<AgentIntent>,
    wait: WaitLimit,
    priority_guard: Option<PriorityGuard>,
}

/// Nobody waits longer than this for the server to hear that an agent does not wait any more.
const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(5);

impl ManifestAcquisition {
    pub(super) fn new(agent: Agent, intents: Vec<AgentIntent>) -> Self {
        Self { wait: agent.wait, agent, intents, priority_guard: None }
    }

    /// For how long to wait and to come back. As long as the agent says, if nobody says so here.
    pub fn wait(mut self, wait: WaitLimit) -> Self {
        self.wait = wait;
        self
    }

    /// The attempt goes on.
    pub(super) fn with_priority_guard(mut self, engaged: PriorityGuard) -> Self {
        self.priority_guard = Some(engaged);
        self
    }

    async fn run(mut self) -> Result<HeldManifest, DeclareError> {
        let turn = self.agent.declare_lock.clone().lock_owned().await;
        // Not before: a declaration that is being withdrawn asks whether anything else rests on the attempt.
        let engaged = self.priority_guard.take().unwrap_or_else(|| self.agent.priority.pin());
        let withdraw_on_drop = WithdrawOnDrop { agent: self.agent.clone(), guards: Some((engaged, turn)) };
        let ttl = u64::try_from(self.agent.ttl.as_micros()).unwrap_or(u64::MAX);
        let mut schedule = RetrySchedule::new(self.wait, ttl, boot_microseconds());
        let mut may_be_known = false;
        loop {
            let sent = boot_microseconds();
            let manifest = self.agent.manifest(&self.intents, schedule.remaining_wait_ms(sent));
            let next = match self.agent.client.declare(&manifest).await {
                Ok(verdict) => {
                    may_be_known = true;
                    schedule.handle_verdict(verdict, boot_microseconds(), random_u64())
                }
                Err(Error::Problem(problem))
                    if problem.code == Code::PriorityFixed && self.agent.priority.adopt(&problem) =>
                {
                    continue;
                }
                Err(error) => {
                    may_be_known |= matches!(error, Error::OutcomeUnknown { .. });
                    let next = schedule.next_retry(boot_microseconds(), random_u64());
                    if !error.is_transient() || next == RetryDecision::TimedOut {
                        withdraw_on_drop.finish(may_be_known).await;
                        return Err(error.into());
                    }
                    next
                }
            };
            match next {
                RetryDecision::Granted(leases) => {
                    if let Some(keeping) = heartbeat_task::start(&self.agent, leases, sent).await {
                        withdraw_on_drop.disarm();
                        let Self { agent, intents, wait, .. } = self;
                        return Ok(HeldManifest::new(agent, intents, wait, keeping));
                    }
                }
                RetryDecision::RetryAt(at) => sleep_until(at).await,
                RetryDecision::TimedOut => {
                    withdraw_on_drop.finish(true).await;
                    return Err(DeclareError::Blocked { blocked_by: schedule.blocked_by });
                }
            }
        }
    }
}

impl IntoFuture for ManifestAcquisition {
    type Output = Result<HeldManifest, DeclareError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// Ends what the server may know of the declaration, when nobody wants it any more. The next declaration waits for it.
struct WithdrawOnDrop {
    agent: Agent,
    guards: Option<(PriorityGuard, OwnedMutexGuard<()>)>,
}

impl WithdrawOnDrop {
    /// There is a claim: nothing to end.
    fn disarm(mut self) {
        self.guards = None;
    }

    /// Says so, if the server may know of it.
    async fn finish(mut self, is_known: bool) {
        let rests = self.guards.take();
        if is_known {
            withdraw(&self.agent).await;
        }
        drop(rests);
    }
}

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        let Some(rests) = self.guards.take() else { return };
        // Without a runtime nobody can be told; the wait and the leases end by themselves.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (agent, task_guard) = (self.agent.clone(), self.agent.client.tasks().track());
        runtime.spawn(async move {
            withdraw(&agent).await;
            drop((rests, task_guard));
        });
    }
}

/// A report is all that ends a wait early, and it ends everything. An agent with other claims lets the wait run out.
async fn withdraw(agent: &Agent) {
    if agent.priority.has_single_guard() {
        let _ = tokio::time::timeout(WITHDRAW_TIMEOUT, agent.report("ABORTED")).await;
    }
}

/// One thing that an agent is about to touch, and in which way.
///
/// ```
/// use tenure_client::agent::AgentIntent;
/// let intent = AgentIntent::mutates("FILE:src/lib.rs");
/// assert_eq!((intent.predicate.as_str(), intent.resource.as_str()), ("MUTATES", "FILE:src/lib.rs"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIntent {
    /// In which way: `PROVIDES`, `CONSUMES`, `DEPENDS_ON`, `MUTATES`, `DELETES` or `RENAMES`.
    pub predicate: String,
    /// On what: `TYPE:path`, where the type is `FILE`, `SYMBOL`, `API_ENDPOINT`, `DATABASE_TABLE` or `CONFIG_KEY`. What ends
    /// with `/` means everything below, and so does a pattern with `*` or `?` from there on.
    pub resource: String,
}

impl AgentIntent {
    /// In whatever way; the server says no to one that it does not know.
    pub fn new(predicate: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { predicate: predicate.into(), resource: resource.into() }
    }

    /// Makes it for others.
    pub fn provides(resource: impl Into<String>) -> Self {
        Self::new("PROVIDES", resource)
    }

    /// Uses it.
    pub fn consumes(resource: impl Into<String>) -> Self {
        Self::new("CONSUMES", resource)
    }

    /// Needs it to stay as it is.
    pub fn depends_on(resource: impl Into<String>) -> Self {
        Self::new("DEPENDS_ON", resource)
    }

    /// Changes it.
    pub fn mutates(resource: impl Into<String>) -> Self {
        Self::new("MUTATES", resource)
    }

    /// Does away with it.
    pub fn deletes(resource: impl Into<String>) -> Self {
        Self::new("DELETES", resource)
    }

    /// Gives it another name.
    pub fn renames(resource: impl Into<String>) -> Self {
        Self::new("RENAMES", resource)
    }

    /// As it stands in a manifest. Without a type it has none, and the server says no.
    pub(super) fn to_manifest_intent(&self) -> ManifestIntent {
        let (resource_type, path) = self.resource.split_once(':').unwrap_or(("", &self.resource));
        ManifestIntent {
            id: None,
            subject: None,
            predicate: self.predicate.clone(),
            object: ManifestObject { resource_type: resource_type.into(), path: path.into() },
            timestamp: None,
            confidence: None,
            session_id: None,
        }
    }

    pub(super) fn to_resource_access(&self) -> ResourceAccess {
        ResourceAccess { resource: self.resource.clone(), predicate: self.predicate.clone() }
    }
}
