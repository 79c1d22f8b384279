//! The ledgers of these tests and of the benchmark: only this file names their kind.

use std::path::Path;

use tenure_ledger::embedded::{EmbeddedStore, LedgerOptions};

/// The ledger in `directory`, in segments of at most this size, with so many bytes in reserve; without a number, the
/// reserve grows.
pub fn ledger_store(directory: &Path, segment_size: u64, reserve: impl Into<Option<u64>>) -> EmbeddedStore {
    let options = LedgerOptions { segment_size, reserve: reserve.into(), witness: None };
    EmbeddedStore { directory: directory.to_owned(), options }
}
