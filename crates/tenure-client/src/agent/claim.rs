//! What an agent holds, and whether it may go on.

use std::sync::Arc;

use tenure_api::{AgentLease, Touch};
use tenure_core::kernel::Fence;
use tokio::sync::{mpsc, oneshot, watch};

use super::declaring::Declaring;
use super::failure::{DeclareError, Doubt, TouchError};
use super::identity::Agent;
use super::intent::Intent;
use super::keeping::{Kept, Order};
use super::pulse::Standing;
use super::restart;
use crate::clock::{boot_microseconds, sleep_until};
use crate::error::Error;
use crate::hold::{Lost, Wait};

/// Everything that one declaration got. It is kept alive, and dropping it gives it back, in the background.
///
/// An agent that cannot be sure pauses. Ask [`Claim::check`] right before each effect on what the leases protect. When a
/// heartbeat does not get through, it says [`Doubt::Paused`] at once; when one gets through in time, work may go on
/// ([`Claim::resumed`]). When a lease is over or may be, it says [`Doubt::Lost`], for good: [`Claim::reacquire`].
pub struct Claim {
    agent: Agent,
    intents: Vec<Intent>,
    wait: Wait,
    leases: Arc<Vec<AgentLease>>,
    standing: watch::Receiver<Standing>,
    orders: mpsc::UnboundedSender<Order>,
    is_unbroken: bool,
}

impl Claim {
    pub(super) fn new(agent: Agent, intents: Vec<Intent>, wait: Wait, kept: Kept) -> Self {
        let Kept { leases, standing, orders } = kept;
        Self { agent, intents, wait, leases, standing, orders, is_unbroken: true }
    }

    /// Whose it is.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// What was declared.
    pub fn intents(&self) -> &[Intent] {
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
    pub fn check(&self) -> Result<(), Doubt> {
        self.standing.borrow().check(boot_microseconds())
    }

    /// Whether [`Claim::check`] has no doubt.
    pub fn is_sure(&self) -> bool {
        self.check().is_ok()
    }

    /// The local deadline, in microseconds of CLOCK_BOOTTIME: nobody else can have any of it before.
    pub fn believed_until(&self) -> u64 {
        self.standing.borrow().until
    }

    /// Resolves as soon as the agent may not go on.
    pub async fn paused(&self) -> Doubt {
        self.changed_to(|checked| checked.err()).await
    }

    /// Resolves when the agent may go on again, or when it is lost.
    pub async fn resumed(&self) -> Result<(), Lost> {
        self.changed_to(|checked| match checked {
            Ok(()) => Some(Ok(())),
            Err(Doubt::Lost(lost)) => Some(Err(lost)),
            Err(Doubt::Paused) => None,
        })
        .await
    }

    async fn changed_to<T>(&self, wanted: impl Fn(Result<(), Doubt>) -> Option<T>) -> T {
        let mut standing = self.standing.clone();
        loop {
            let now = boot_microseconds();
            let (checked, changes_at) = {
                let standing = standing.borrow_and_update();
                (standing.check(now), standing.changes_at(now))
            };
            if let Some(found) = wanted(checked) {
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
    pub async fn touch(&self, touched: impl IntoIterator<Item = Intent>) -> Result<(), TouchError> {
        self.check()?;
        let resources = touched.into_iter().map(|intent| intent.as_wanted()).collect();
        self.agent.client.touch(&self.agent.id, &Touch { resources }).await.map_err(TouchError::of)?;
        Ok(())
    }

    /// Gives everything back, and says how that went. It is tried for some seconds; after that the leases run out.
    pub async fn release(self) -> Result<(), Error> {
        let (done, released) = oneshot::channel();
        self.orders.send(Order::Release(done)).map_err(|_| self.gone())?;
        released.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Asks what is true of the leases, and declares the same anew with the same priority. Heartbeats end before.
    ///
    /// Others may have had some of it meanwhile: [`Claim::is_unbroken`] says whether what the agent saw before still counts.
    pub async fn reacquire(self) -> Result<Claim, DeclareError> {
        let engaged = self.agent.attempt.engage();
        self.hand_over().await;
        let (agent, intents, wait) = (self.agent.clone(), self.intents.clone(), self.wait);
        let remembered: Vec<_> = self.leases.iter().map(|lease| lease.id.clone()).collect();
        let declaring = Declaring::new(agent.clone(), intents).wait(wait).go_on(engaged);
        restart::have_again(&agent, &remembered, declaring, wait).await
    }

    /// Whether these are the very leases that the agent had before it was in doubt or restarted, so that nobody else can have
    /// had anything of it. If not, look again at everything that they protect.
    pub fn is_unbroken(&self) -> bool {
        self.is_unbroken
    }

    pub(super) fn compare_with(&mut self, remembered: &[String]) {
        self.is_unbroken = self.leases.iter().all(|lease| remembered.contains(&lease.id));
    }

    /// Ends the heartbeats, and leaves the leases as they are.
    pub(super) async fn hand_over(&self) {
        let (done, handed_over) = oneshot::channel();
        if self.orders.send(Order::HandOver(done)).is_ok() {
            let _ = handed_over.await;
        }
    }

    /// Whoever kept it may be gone with its runtime.
    fn gone(&self) -> Error {
        Error::Unknown { address: self.agent.client.address(), source: "the runtime has ended".into() }
    }
}
