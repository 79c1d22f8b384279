//! What happened to work, in the past tense. That a lease with authority began, was renewed and ended is said by the events
//! of leases.

use crate::authority::{Budget, Purpose};
use crate::kernel::newtypes::{Fence, IdempotencyKey, Tick};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkEvent {
    Spent {
        lease: Fence,
        at: Tick,
        amount: Budget,
        purpose: Purpose,
        /// Under which key it was asked for.
        key: Option<IdempotencyKey>,
    },
}

crate::kernel::event::type_names! {
    WorkEvent {
        Spent = "work.spent",
    }
}

impl WorkEvent {
    pub fn occurred_at(&self) -> Tick {
        match self {
            WorkEvent::Spent { at, .. } => *at,
        }
    }

    /// About how many bytes callers made it long by.
    pub fn byte_size(&self) -> usize {
        match self {
            WorkEvent::Spent { purpose, .. } => {
                let names = [&purpose.work_id, &purpose.tool, &purpose.namespace];
                names.into_iter().flatten().map(|name| name.len()).sum()
            }
        }
    }
}
