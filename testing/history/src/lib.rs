//! What clients were told, checked against what a lease promises.
//!
//! A [`History`] is every request of every client with its answer, and when it was asked and answered by one clock. Two
//! checks look at it, and neither shares a line with the code that they check:
//!
//! - [`linearizability::check`] asks whether there is any order of the operations, each at one moment between its question and
//!   its answer, in which one lease table would have given these answers. It needs nothing but the history.
//! - [`ledger::check`] compares every answer with the ledger that the server left behind.
//!
//! What they cannot see is said in each, and in `docs/adr/0013-histories.md`.

pub mod fences;
mod history;
mod law;
pub mod ledger;
pub mod linearizability;
mod operation;

pub use history::{History, HistoryReadError};
pub use law::{Law, Violation};
pub use operation::{
    Action, Grant, LeaseMode, LeaseRequest, ObservedLease, ObservedState, Operation, OperationResponse,
    RequestIdentity,
};
