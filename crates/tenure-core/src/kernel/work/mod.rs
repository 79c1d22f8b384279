//! Work: leases with authority, on resources that are called `work:…`.
//!
//! Such a lease is an ordinary one, which also says what its holder may do and how much of it; see
//! [`crate::authority`]. Its holder may derive others from it, for somebody else: they stand in a tree, and whoever ends
//! takes along everybody below. What a child was given is gone from its parent for good, used up or not: so nobody has to
//! trust what a child says that it used.

mod command;
mod decide;
mod event;

pub use command::{ClaimWork, DeriveLease, SpendBudget, WorkCommand};
pub(super) use decide::{decide, end_derived_leases, parent_expires_at};
pub use event::WorkEvent;
