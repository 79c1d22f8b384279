//! What may be asked about work.

use std::sync::Arc;

use crate::authority::{Budget, LeaseScope, Purpose};
use crate::kernel::command::Claim;
use crate::kernel::name::{Holder, Labels, Principal};
use crate::kernel::value::{Fence, Nonce, RequestKey, Span};

/// One request, in the imperative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkCommand {
    /// A lease on a piece of work, with authority of its own.
    Claim(ClaimWork),
    /// A lease on a piece of work, with a part of the authority of another lease.
    Derive(Derive),
    /// Use something up.
    Spend(Spend),
}

/// A request for a lease with authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimWork {
    /// Who speaks.
    pub principal: Principal,
    /// Who will hold.
    pub holder: Holder,
    /// On which work.
    pub work_id: Arc<str>,
    /// For how long, unless it is renewed.
    pub ttl: Span,
    /// For the lease's token.
    pub nonce: Nonce,
    /// For people and programs of the caller's.
    pub labels: Labels,
    /// What its holder may do.
    pub scope: LeaseScope,
    /// How much of it.
    pub budget: Budget,
    /// So that a repeated request finds its first answer.
    pub key: Option<RequestKey>,
}

/// A request for a part of a lease that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derive {
    /// Of which lease.
    pub parent: Fence,
    /// Why the caller may.
    pub claim: Claim,
    /// The part: who will hold it, on which work, for how long, and what with.
    pub child: ClaimWork,
}

/// A request to use something up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spend {
    /// Of which lease.
    pub lease: Fence,
    /// Why the caller may.
    pub claim: Claim,
    /// How much. Nothing at all asks whether it would be allowed.
    pub amount: Budget,
    /// What for.
    pub purpose: Purpose,
    /// So that a repeated request spends once.
    pub key: Option<RequestKey>,
}
