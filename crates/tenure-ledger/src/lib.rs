//! The ledger: the ordered, hash-chained, durable list of events. State is only ever a replay of it.
//!
//! [`LedgerStore`] opens a [`Ledger`], the writer, with a [`LedgerReader`] and a [`LedgerMaintenance`] that work beside it.
//! [`embedded`] keeps a ledger in one directory of segment files; [`MemoryLedger`] keeps one for tests and simulations. Both
//! pass the same suite of tests. [`open_read_only`] is for programs that read a ledger and do not write it. [`signing`] signs
//! batches, and proves leases with passports.

// What other crates and users rely on says what it is for.
#![warn(missing_docs)]

mod batch;
mod checkpoint;
pub mod embedded;
mod error;
mod ledger;
mod memory_ledger;
mod read_only;
pub mod signing;

pub use batch::{Batch, BatchBytes, ChainHash, EncodedRecords, chain_hash};
pub use checkpoint::{Checkpoint, CheckpointHeader, CheckpointParts};
pub use error::{AppendError, CopyError, Damage, OpenError, ReadError};
pub use ledger::{
    Batches, Head, Ledger, LedgerId, LedgerMaintenance, LedgerReader, LedgerRecovery, LedgerStore, Retention,
    Seq, SpaceLevel,
};
pub use memory_ledger::MemoryLedger;
pub use read_only::{BatchReader, LocatedBatch, ReadOnlyLedger, VerificationReport, open_read_only, verify};
