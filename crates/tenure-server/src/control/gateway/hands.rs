//! What the gateway asks of whoever knows the lease.

use tenure_control::hand::Pass;
use tenure_control::refusal::Refusal;
use tokio::sync::watch;

use crate::control::desk::Desk;
pub(crate) use crate::control::message::Blocked;

/// Whoever knows whose hand is on the device.
pub(crate) trait Hands: Send + Sync {
    /// Whether the pass still counts, now.
    fn still_counts(&self, pass: Pass) -> Result<(), Refusal>;
    /// Tells of every change of hands: the number of the generation that has begun. It is told after
    /// [`Self::still_counts`] knows.
    fn changes(&self) -> watch::Receiver<u64>;
    /// Whether the lease is this connection's, now.
    fn owns(&self, identity: &str) -> bool;
    fn millis(&self) -> u32;
}

impl Hands for Desk {
    fn still_counts(&self, pass: Pass) -> Result<(), Refusal> {
        Desk::still_counts(self, pass)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.hands()
    }

    fn owns(&self, identity: &str) -> bool {
        self.look(|held, now| {
            held.is_some_and(|held| &*held.owner.identity == identity && !held.is_past(now))
        })
    }

    fn millis(&self) -> u32 {
        self.uptime.at(self.now()).0
    }
}
