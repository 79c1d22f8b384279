//! What an agent holds, and whether it may go on.

use std::sync::Arc;

use tenure_api::{AgentLease, ResourceTouchReport};
use tenure_core::kernel::Fence;
use tokio::sync::{mpsc, oneshot, watch};

use super::heartbeat::HoldStatus;
use super::heartbeat_task::{HeartbeatCommand, HeartbeatHandle};
use super::identity::Agent;
use super::manifest_acquisition::{AgentIntent, ManifestAcquisition};
use super::{CheckError, DeclareError, TouchError, restart};
use crate::clock::{boot_microseconds, sleep_until};
use crate::error::Error;
use crate::hold::{LeaseLost, WaitLimit};

/// Everything that one declaration got. It is kept alive, and dropping it gives it back, in the background.
///
/// An agent that cannot be sure pauses. Ask [`HeldManifest::check`] right before each effect on what the leases protect. When a
/// heartbeat does not get through, it says [`CheckError::Paused`] at once; when one gets through in time, work may go on
/// ([`HeldManifest::wait_until_resumed`]). When a lease is over or may be, it says [`CheckError::Lost`], for good: [`HeldManifest::reacquire`].
pub struct HeldManifest {
    agent: Agent,
    intents: Vec<AgentIntent>,
    wait: WaitLimit,
    leases: Arc<Vec<AgentLease>>,
    status: watch::Receiver<HoldStatus>,
    commands: mpsc::UnboundedSender<HeartbeatCommand>,
    is_unbroken: bool,
}

impl HeldManifest {
    pub(super) fn new(
        agent: Agent,
        intents: Vec<AgentIntent>,
        wait: WaitLimit,
        kept: HeartbeatHandle,
    ) -> Self {
        let HeartbeatHandle { leases, status, commands } = kept;
        Self { agent, intents, wait, leases, status, commands, is_unbroken: true }
    }

    /// Whose it is.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// What was declared.
    pub fn intents(&self) -> &[AgentIntent] {
        &self.intents
    }

    /// The leases as they were granted, one for each resource.
    pub fn leases(&self) -> &[AgentLease] {
        &self.leases
    }

    /// The fence of the lease on this resource. Hand it to whatever can refuse a writer that is late.
    pub fn fence(&self, resource: &str) -> Option<Fence> {
        self.leases.iter().find(|lease| lease.resource == resource).map(|lease| Fence(lease.fence))
    }

    /// Whether the agent may go on. It asks the clock itself, so that a process that was stopped finds out at once.
    pub fn check(&self) -> Result<(), CheckError> {
        self.status.borrow().check(boot_microseconds())
    }

    /// Whether [`HeldManifest::check`] has no doubt.
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }

    /// The local deadline, in microseconds of CLOCK_BOOTTIME: nobody else can have any of it before.
    pub fn deadline(&self) -> u64 {
        self.status.borrow().deadline
    }

    /// Resolves as soon as the agent may not go on.
    pub async fn wait_until_paused(&self) -> CheckError {
        self.wait_for_check(|checked| checked.err()).await
    }

    /// Resolves when the agent may go on again, or when it is lost.
    pub async fn wait_until_resumed(&self) -> Result<(), LeaseLost> {
        self.wait_for_check(|checked| match checked {
            Ok(()) => Some(Ok(())),
            Err(CheckError::Lost(lost)) => Some(Err(lost)),
            Err(CheckError::Paused) => None,
        })
        .await
    }

    async fn wait_for_check<T>(&self, select: impl Fn(Result<(), CheckError>) -> Option<T>) -> T {
        let mut standing = self.status.clone();
        loop {
            let now = boot_microseconds();
            let (checked, changes_at) = {
                let standing = standing.borrow_and_update();
                (standing.check(now), standing.changes_at(now))
            };
            if let Some(found) = select(checked) {
                return found;
            }
            tokio::select! {
                changed = standing.changed() => if changed.is_err() {
                    // Nobody sends heartbeats any more.
                    sleep_until(changes_at).await;
                },
                () = sleep_until(changes_at) => {}
            }
        }
    }

    /// Says what the agent is about to touch. It fails if the agent has no lease for some of it, which is noted.
    pub async fn touch(&self, touched: impl IntoIterator<Item = AgentIntent>) -> Result<(), TouchError> {
        self.check()?;
        let resources = touched.into_iter().map(|intent| intent.to_resource_access()).collect();
        self.agent
            .client
            .touch(&self.agent.id, &ResourceTouchReport { resources })
            .await
            .map_err(TouchError::from_error)?;
        Ok(())
    }

    /// Gives everything back, and says how that went. It is tried for some seconds; after that the leases run out.
    pub async fn release(self) -> Result<(), Error> {
        let (done, released) = oneshot::channel();
        self.commands.send(HeartbeatCommand::Release(done)).map_err(|_| self.task_gone_error())?;
        released.await.unwrap_or_else(|_| Err(self.task_gone_error()))
    }

    /// Asks what is true of the leases, and declares the same anew with the same priority. Heartbeats end before.
    ///
    /// Others may have had some of it meanwhile: [`HeldManifest::is_continuous`] says whether what the agent saw before still counts.
    pub async fn reacquire(self) -> Result<HeldManifest, DeclareError> {
        let priority_guard = self.agent.priority.pin();
        self.detach().await;
        let (agent, intents, wait) = (self.agent.clone(), self.intents.clone(), self.wait);
        let remembered: Vec<_> = self.leases.iter().map(|lease| lease.id.clone()).collect();
        let declaring =
            ManifestAcquisition::new(agent.clone(), intents).wait(wait).with_priority_guard(priority_guard);
        restart::reacquire(&agent, &remembered, declaring, wait).await
    }

    /// Whether these are the very leases that the agent had before it was in doubt or restarted, so that nobody else can have
    /// had anything of it. If not, look again at everything that they protect.
    pub fn is_continuous(&self) -> bool {
        self.is_unbroken
    }

    pub(super) fn compare_leases_with(&mut self, remembered: &[String]) {
        self.is_unbroken = self.leases.iter().all(|lease| remembered.contains(&lease.id));
    }

    /// Ends the heartbeats, and leaves the leases as they are.
    pub(super) async fn detach(&self) {
        let (done, detached) = oneshot::channel();
        if self.commands.send(HeartbeatCommand::Detach(done)).is_ok() {
            let _ = detached.await;
        }
    }

    /// Whoever kept it may be gone with its runtime.
    fn task_gone_error(&self) -> Error {
        Error::OutcomeUnknown { address: self.agent.client.address(), source: "the runtime has ended".into() }
    }
}
