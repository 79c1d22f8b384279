//! What the gateway asks of whoever knows the lease.

use tenure_control::ownership::Permit;
use tenure_control::rejection::ControlRejection;
use tokio::sync::watch;

use crate::control::controller::Controller;
pub(crate) use crate::control::message::CommandError;

/// Whoever knows whose hand is on the device.
pub(crate) trait OwnershipSource: Send + Sync {
    /// Whether the pass still counts, now.
    fn check_permit(&self, pass: Permit) -> Result<(), ControlRejection>;
    /// Tells of every change of hands: the number of the generation that has begun. It is told after
    /// [`Self::check_permit`] knows.
    fn subscribe(&self) -> watch::Receiver<u64>;
    /// Whether the lease is this connection's, now.
    fn is_owner(&self, identity: &str) -> bool;
    fn uptime_ms(&self) -> u32;
}

impl OwnershipSource for Controller {
    fn check_permit(&self, pass: Permit) -> Result<(), ControlRejection> {
        Controller::check_permit(self, pass)
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.subscribe_ownership()
    }

    fn is_owner(&self, identity: &str) -> bool {
        self.read(|held, now| {
            held.is_some_and(|held| &*held.owner.identity == identity && !held.is_expired(now))
        })
    }

    fn uptime_ms(&self) -> u32 {
        self.uptime.at(self.now()).0
    }
}
