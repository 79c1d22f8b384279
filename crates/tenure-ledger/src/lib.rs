//! The ledger: the ordered, hash-chained, durable list of events. State is only ever a replay of it.
//!
//! [`Ledger`] is the seam: compare-and-append, and read. [`MemoryLedger`] keeps it for tests and
//! simulations, [`EmbeddedLedger`] in one directory of segment files, with nothing to install.

mod batch;
pub mod embedded;
mod ledger;
mod memory;

pub use batch::{Batch, Hash, chain};
pub use embedded::EmbeddedLedger;
pub use ledger::{AppendError, Head, Ledger, ReadError, Seq};
pub use memory::MemoryLedger;
