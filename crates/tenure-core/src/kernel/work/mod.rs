//! Work: leases with authority, on resources that are named `work:…`.
//!
//! Such a lease is an ordinary one with a scope and a budget; see [`crate::authority`]. Its holder may derive child leases
//! for other holders. They form a tree: a lease that ends takes all leases below it along. A child's budget is gone from its
//! parent for good, spent or not, so that a child's report of its spending need not be trusted.

pub(super) mod codec;
mod decide;
mod state;

use std::sync::Arc;

pub(super) use decide::{decide, end_derived_leases, parent_expires_at};
pub(crate) use state::KeyedSpend;
pub use state::WorkLease;
pub(super) use state::WorkLeaseStore;

use crate::authority::{Budget, LeaseScope, Purpose};
use crate::kernel::command::LeaseCredential;
use crate::value::{Fence, Holder, IdempotencyKey, Labels, Nonce, Principal, Tick, TickDuration};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkCommand {
    /// A lease on a piece of work, with authority of its own.
    Claim(ClaimWork),
    /// A lease on a piece of work, with a part of the authority of another lease.
    Derive(DeriveLease),
    Spend(SpendBudget),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimWork {
    pub principal: Principal,
    pub holder: Holder,
    pub work_id: Arc<str>,
    /// For how long, unless it is renewed.
    pub ttl: TickDuration,
    pub nonce: Nonce,
    /// For people and programs of the caller's.
    pub labels: Labels,
    pub scope: LeaseScope,
    pub budget: Budget,
    /// So that a repeated request finds its first answer.
    pub key: Option<IdempotencyKey>,
}

/// A request for a part of a lease that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeriveLease {
    pub parent: Fence,
    pub credential: LeaseCredential,
    /// The part: who will hold it, on which work, for how long, and what with.
    pub child: ClaimWork,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendBudget {
    pub lease: Fence,
    pub credential: LeaseCredential,
    /// How much. Nothing at all asks whether it would be allowed.
    pub amount: Budget,
    pub purpose: Purpose,
    /// So that a repeated request spends once.
    pub key: Option<IdempotencyKey>,
}

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
