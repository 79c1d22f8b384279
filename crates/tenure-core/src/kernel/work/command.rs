//! What may be asked about work.

use std::sync::Arc;

use crate::authority::{Budget, LeaseScope, Purpose};
use crate::kernel::command::LeaseCredential;
use crate::kernel::name::{Holder, Labels, Principal};
use crate::kernel::newtypes::{Fence, IdempotencyKey, Nonce, TickDuration};

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
