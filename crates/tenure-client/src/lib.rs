//! The client: keeps a lease alive, and stops by itself when it cannot.
//!
//! [`Keeper`] is a step function like the registrar: it is told what happened and what the local clock
//! says, and answers with what to send. [`believed_until`] is the rule it stops by, [`FenceGate`] the one
//! by which a resource refuses whoever is late all the same.

mod belief;
mod fence;
mod keeper;
#[cfg(test)]
mod keeper_tests;

pub use belief::{ALLOWANCE, believed_until};
pub use fence::{FenceGate, StaleFence};
pub use keeper::{Attempt, Call, Effect, Input, Keeper, Outcome};
