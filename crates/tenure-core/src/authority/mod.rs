//! Authority of a work lease: its scope and its budget.
//!
//! A lease says which holder has a resource until when. A lease with authority also says **what** its holder may do (a
//! [`LeaseScope`]) and **how much** of it (a [`Budget`]). Its holder may derive child leases with a part of both: a child has
//! no wider scope and no later expiry than its parent, and its budget is taken from its parent's.
//!
//! These are plain values: [`AuthorityLease`] is a program's own copy, to check and to derive from without a server. What it
//! derives is unsigned: only the registrar's ledger makes a lease of it. The kernel uses the same functions.
// Programs outside this workspace use this: what it offers says what it is for.
#![warn(missing_docs)]

mod budget;
mod scope;

use std::sync::Arc;

pub use budget::{Budget, BudgetExceeded};
use scope::has_parent_component;
pub use scope::{LeaseScope, Purpose, ScopeNames};
use thiserror::Error;

use crate::kernel::{Fence, Resource, Tick};
use crate::rules::InvalidInput;

/// What the resources are called on which there is work.
const DOMAIN: &str = "work:";

/// What a lease was given when it began. It never changes, so it can be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The lease that it was derived from.
    pub parent: Option<Fence>,
    /// What it allows.
    pub scope: LeaseScope,
    /// How much of it.
    pub budget: Budget,
}

/// A program's own copy of a lease with authority.
///
/// ```
/// use tenure_core::authority::{AuthorityLease, Budget, LeaseScope, Purpose};
/// use tenure_core::kernel::Tick;
/// let budget = Budget { tokens: 1_000, ..Budget::MAX };
/// let mut lease = AuthorityLease::new("T-17", LeaseScope::Unlimited, budget, Tick(60_000_000));
/// let part = Budget { tokens: 400, ..Budget::ZERO };
/// let child = lease.derive("T-17/tests", LeaseScope::Unlimited, part, Tick(30_000_000)).unwrap();
/// assert_eq!((lease.remaining().tokens, child.remaining().tokens), (600, 400));
/// assert!(!child.is_signed(), "only the registrar makes a lease of it");
/// assert!(lease.spend(Budget { tokens: 601, ..Budget::ZERO }, &Purpose::default()).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityLease {
    work_id: Arc<str>,
    scope: LeaseScope,
    initial: Budget,
    remaining: Budget,
    expires_at: Tick,
    signature: Option<Arc<[u8]>>,
}

/// Why a child cannot be like this. Nothing was taken from the parent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeriveError {
    /// The parent does not allow work on this.
    #[error("the lease does not allow that work")]
    WorkOutOfScope,
    /// The parent does not allow all of this.
    #[error("the scope is not within that of the lease")]
    ScopeTooWide,
    /// It would live longer than its parent.
    #[error("it would outlive the lease that it is derived from")]
    OutlivesParent {
        /// When the parent is over.
        parent_expires_at: Tick,
    },
    /// The parent has less than this.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
}

/// Why nothing was spent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpendError {
    /// The lease does not allow this.
    #[error("the lease does not allow this")]
    OutOfScope,
    /// There is less than this.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
}

impl AuthorityLease {
    /// A lease that nobody has signed yet.
    pub fn new(work_id: &str, scope: LeaseScope, budget: Budget, expires_at: Tick) -> Self {
        Self {
            work_id: work_id.into(),
            scope,
            initial: budget,
            remaining: budget,
            expires_at,
            signature: None,
        }
    }

    /// A part of this lease for somebody else, and less left here: all of that, or nothing. Nobody has signed it.
    pub fn derive(
        &mut self,
        work_id: &str,
        scope: LeaseScope,
        budget: Budget,
        expires_at: Tick,
    ) -> Result<AuthorityLease, DeriveError> {
        let remaining = check_derived(
            (&self.scope, self.remaining, self.expires_at),
            work_id,
            (&scope, budget, expires_at),
        )?;
        self.remaining = remaining;
        Ok(AuthorityLease::new(work_id, scope, budget, expires_at))
    }

    /// Uses up `amount` for `purpose`: all of it, or nothing.
    pub fn spend(&mut self, amount: Budget, purpose: &Purpose) -> Result<(), SpendError> {
        if !self.scope.allows(purpose) {
            return Err(SpendError::OutOfScope);
        }
        Ok(self.remaining.deduct(amount)?)
    }

    /// On what it is.
    pub fn work_id(&self) -> &str {
        &self.work_id
    }

    /// What it allows.
    pub fn scope(&self) -> &LeaseScope {
        &self.scope
    }

    /// How much it had when it began.
    pub fn initial(&self) -> Budget {
        self.initial
    }

    /// How much is left.
    pub fn remaining(&self) -> Budget {
        self.remaining
    }

    /// When it is over.
    pub fn expires_at(&self) -> Tick {
        self.expires_at
    }

    /// Whether a registrar has signed it.
    pub fn is_signed(&self) -> bool {
        self.signature.is_some()
    }

    /// The same with what the registrar answered as its signature. Whether it is one is for who knows its keys.
    pub fn with_signature(self, signature: &[u8]) -> AuthorityLease {
        AuthorityLease { signature: Some(signature.into()), ..self }
    }

    /// What is signed of its authority: the scope, with its length before it in 4 bytes, and the budget that it began with. What
    /// is left is not in it: a signature over that would break with the first token.
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let scope = self.scope.canonical_bytes();
        let length = u32::try_from(scope.len()).expect("a scope is small");
        [&length.to_be_bytes()[..], &scope, &self.initial.canonical_bytes()].concat()
    }
}

/// What is left of a parent with this scope, budget and end once it has given all this to a child. Whoever decides about
/// leases and whoever only reads of them judges by this.
pub fn check_derived(
    (parent_scope, parent_remaining, parent_expires_at): (&LeaseScope, Budget, Tick),
    work_id: &str,
    (scope, budget, expires_at): (&LeaseScope, Budget, Tick),
) -> Result<Budget, DeriveError> {
    if !parent_scope.allows_work(work_id) {
        return Err(DeriveError::WorkOutOfScope);
    }
    if !scope.is_within(parent_scope) {
        return Err(DeriveError::ScopeTooWide);
    }
    if expires_at > parent_expires_at {
        return Err(DeriveError::OutlivesParent { parent_expires_at });
    }
    Ok(parent_remaining.minus(budget)?)
}

/// The resource that a lease on this work is on.
pub fn work_resource(work_id: &str) -> Result<Resource, InvalidInput> {
    if has_parent_component(work_id) {
        return Err(InvalidInput::new("work_id", "has a part that is `..`, which is never allowed"));
    }
    if work_id.is_empty() || work_id.len() > LeaseScope::MAX_NAME_BYTES {
        let reason = format!("has to have from 1 to {} bytes", LeaseScope::MAX_NAME_BYTES);
        return Err(InvalidInput::new("work_id", reason));
    }
    Resource::parse(&format!("{DOMAIN}{work_id}"))
        .map_err(|InvalidInput { reason, .. }| InvalidInput::new("work_id", reason))
}

/// The work that a lease on this resource is about; nothing if it is about something else.
pub fn work_id_of(resource: &Resource) -> Option<&str> {
    resource.as_str().strip_prefix(DOMAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(tokens: u64) -> Budget {
        Budget { tokens, ..Budget::ZERO }
    }

    // S2-109, O-16
    #[test]
    fn derive_beyond_the_parent_fails_and_takes_nothing() {
        let scope = LeaseScope::limited(["a", "b"], ["t"], ["n"]).unwrap();
        let mut lease =
            AuthorityLease::new("a", scope.clone(), tokens(10), Tick(100)).with_signature(b"signature");
        let before = lease.clone();
        let refused = |lease: &mut AuthorityLease, work, scope, budget, at| {
            let error = lease.derive(work, scope, budget, Tick(at)).unwrap_err();
            assert_eq!(*lease, before);
            error
        };
        let part = || LeaseScope::limited(["b"], [], ["n/m"]).unwrap();
        assert_eq!(refused(&mut lease, "c", part(), tokens(1), 1), DeriveError::WorkOutOfScope);
        assert_eq!(refused(&mut lease, "a/..", part(), tokens(1), 1), DeriveError::WorkOutOfScope);
        let wide = LeaseScope::Unlimited;
        assert_eq!(refused(&mut lease, "b", wide, tokens(1), 1), DeriveError::ScopeTooWide);
        let outlives = DeriveError::OutlivesParent { parent_expires_at: Tick(100) };
        assert_eq!(refused(&mut lease, "b", part(), tokens(1), 101), outlives);
        let exceeded = DeriveError::Budget(BudgetExceeded { remaining: tokens(10) });
        assert_eq!(refused(&mut lease, "b", part(), tokens(11), 100), exceeded);

        let child = lease.derive("b", part(), tokens(4), Tick(100)).unwrap();
        assert_eq!((lease.remaining(), child.remaining(), child.work_id()), (tokens(6), tokens(4), "b"));
        assert!(lease.is_signed() && !child.is_signed());
    }

    // S2-110
    #[test]
    fn canonical_bytes_do_not_change_when_budget_is_spent() {
        let mut lease = AuthorityLease::new("a", LeaseScope::Unlimited, tokens(10), Tick(100));
        let signed = lease.canonical_bytes();
        let elsewhere = Purpose { namespace: Some("../b".into()), ..Purpose::default() };
        assert_eq!(lease.spend(tokens(1), &elsewhere), Err(SpendError::OutOfScope));
        lease.spend(tokens(9), &Purpose::default()).unwrap();
        assert_eq!(lease.spend(tokens(2), &elsewhere), Err(SpendError::OutOfScope));
        assert!(lease.spend(tokens(2), &Purpose::default()).is_err());
        assert_eq!((lease.remaining(), lease.canonical_bytes()), (tokens(1), signed));
    }
}
