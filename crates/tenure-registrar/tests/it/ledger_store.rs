//! The ledgers of these tests and of the benchmark: only this file names their kind.

use std::path::Path;

use tenure_ledger::embedded::{EmbeddedStore, LedgerOptions};

/// The ledger in `directory`, in segments of this size, with so many bytes in reserve.
pub fn ledger_store(directory: &Path, segment_size: u64, reserve: u64) -> EmbeddedStore {
    let options = LedgerOptions { segment_size, reserve: Some(reserve), witness: None };
    EmbeddedStore { directory: directory.to_owned(), options }
}
