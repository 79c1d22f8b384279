//! The ledger: the ordered, hash-chained, durable list of events. State is only ever a replay of it.
//!
//! [`Ledger`] is the seam: compare-and-append, and read. [`MemoryLedger`] keeps it for tests and
//! simulations, [`EmbeddedLedger`] in one directory of segment files, with nothing to install.
//! [`signing`] is what a batch is sealed with, and what a lease's passport proves.

// What other crates and users rely on says what it is for.
#![warn(missing_docs)]

mod batch;
mod checkpoint;
pub mod embedded;
mod encoded_records;
mod error;
mod ledger;
mod memory_ledger;
pub mod signing;

pub use batch::{Batch, BatchBytes, ChainHash, chain_hash};
pub use checkpoint::{Checkpoint, CheckpointHeader, CheckpointParts};
pub use embedded::EmbeddedLedger;
pub use encoded_records::EncodedRecords;
pub use error::{AppendError, Damage, OpenError, ReadError};
pub use ledger::{Head, Ledger, LedgerId, Retention, Seq, SpaceLevel};
pub use memory_ledger::MemoryLedger;
