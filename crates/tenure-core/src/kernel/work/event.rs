//! What happened to work, in the past tense. That a lease with authority began, was renewed and ended is said by the events
//! of leases.

use crate::authority::{Budget, Purpose};
use crate::kernel::value::{Fence, RequestKey, Tick};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkEvent {
    /// Something was used up.
    Spent {
        /// Of which lease.
        lease: Fence,
        /// When.
        at: Tick,
        /// How much.
        amount: Budget,
        /// What for.
        purpose: Purpose,
        /// Under which key it was asked for.
        key: Option<RequestKey>,
    },
}

impl WorkEvent {
    /// The type of every event of work.
    pub const TYPE_NAMES: [&str; 1] = ["work.spent"];

    /// Its type, as records and those who listen know it.
    pub const fn type_name(&self) -> &'static str {
        match self {
            WorkEvent::Spent { .. } => Self::TYPE_NAMES[0],
        }
    }

    /// When it happened.
    pub fn at(&self) -> Tick {
        match self {
            WorkEvent::Spent { at, .. } => *at,
        }
    }

    /// About how many bytes callers made it long by.
    pub fn bytes(&self) -> usize {
        match self {
            WorkEvent::Spent { purpose, .. } => {
                let names = [&purpose.work_id, &purpose.tool, &purpose.namespace];
                names.into_iter().flatten().map(|name| name.len()).sum()
            }
        }
    }
}
