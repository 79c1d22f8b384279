//! The authority lease: what its holder may do with it, and how much of it.
//!
//! A lease says who may touch something until when. A lease with authority also says **what** its holder may do (a
//! [`LeaseScope`]) and **how much** of it (a [`Budget`]), and its holder may give a part of both to somebody else: a child
//! never reaches further than its parent, never lives longer, and what it may use up is taken from its parent.
//!
//! These are plain values: [`AuthorityLease`] is a program's own copy, which it can ask and derive from without a server.
//! What it derives is unsigned, and so worth nothing to others: only the registrar's ledger makes a lease of it. The
//! kernel judges by the very same functions.
// Programs outside this workspace use this: what it offers says what it is for.
#![warn(missing_docs)]

mod budget;
mod lease;
mod scope;

pub use budget::{Budget, BudgetExceeded};
pub use lease::{
    Authority, AuthorityLease, DeriveError, SpendError, check_derived, work_id_of, work_resource,
};
pub use scope::{LeaseScope, Purpose, ScopeNames};
