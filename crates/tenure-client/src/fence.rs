//! What a resource does with fences: it remembers the highest, and refuses whatever is lower.

use std::fmt;

use tenure_core::kernel::Fence;

/// The resource's side of a lease. Keep it where the resource keeps its data, as durably as that.
///
/// ```
/// use tenure_client::FenceGate;
/// use tenure_core::kernel::Fence;
/// let mut gate = FenceGate::default();
/// assert!(gate.admit(Fence(7)).is_ok());
/// assert!(gate.admit(Fence(7)).is_ok(), "the same holder again");
/// assert!(gate.admit(Fence(9)).is_ok(), "the next holder");
/// assert!(gate.admit(Fence(7)).is_err(), "the first one was paused and is late");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FenceGate {
    highest: Fence,
}

/// Somebody newer has been here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleFence {
    /// What was presented.
    pub presented: Fence,
    /// The highest that was seen before.
    pub highest: Fence,
}

impl FenceGate {
    /// A gate that has already seen `highest`.
    pub fn after(highest: Fence) -> Self {
        Self { highest }
    }

    /// Lets a writer with this fence in, unless a newer one was here before.
    pub fn admit(&mut self, fence: Fence) -> Result<(), StaleFence> {
        if fence < self.highest {
            return Err(StaleFence { presented: fence, highest: self.highest });
        }
        self.highest = fence;
        Ok(())
    }
}

impl fmt::Display for StaleFence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { presented, highest } = self;
        write!(
            formatter,
            "fence {} is stale: {} was here since; the lease was lost, stop and acquire it again",
            presented.0, highest.0
        )
    }
}

impl std::error::Error for StaleFence {}
