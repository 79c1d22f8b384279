//! The ledger.

pub mod signing;
