//! Checks the recorded responses of clients against what a lease promises.
//!
//! A [`History`] is every request of every client with its response, and the times of both by one clock. Two checks read it,
//! and neither shares a line with the code that it checks:
//!
//! - [`linearizability::check`] searches for an order of the operations, each at one moment between its request and its
//!   response, in which one lease table would have given these responses. It needs nothing but the history.
//! - [`ledger::check`] compares every response with the ledger that the server left behind.
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
