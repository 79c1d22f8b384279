//! What the gateway asks of whoever knows the lease.

use tenure_control::hand::Pass;
use tenure_control::problem::Problem;
use tenure_control::refusal::Refusal;
use tokio::sync::watch;

/// Whoever knows whose hand is on the device.
pub(crate) trait Hands: Send + Sync {
    /// Whether the pass still counts, now.
    fn still_counts(&self, pass: Pass) -> Result<(), Refusal>;
    /// Tells of every change of hands: the number of the generation that has begun. It is told after
    /// [`Self::still_counts`] knows.
    fn changes(&self) -> watch::Receiver<u64>;
    /// Whether the lease is this connection's, now.
    fn owns(&self, identity: &str) -> bool;
    /// The device's clock, for answers.
    fn millis(&self) -> u32;
}

/// Why a command did not come through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The lease is in the way.
    Refused(Refusal),
    /// Something else is.
    Problem(Problem),
}

impl From<Refusal> for Blocked {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Problem> for Blocked {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}
