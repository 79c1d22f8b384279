//! Every ledger passes the suite, and the two that there are agree.

use std::sync::Arc;

use tenure_core::ledger::EventRecord;
use tenure_faulty_disk::FaultyDisk;
use tenure_ledger::embedded::{EmbeddedLedger, EmbeddedRecovery, EmbeddedStore};
use tenure_ledger::{
    AppendError, Head, Ledger, LedgerId, LedgerRecovery, LedgerStore, MemoryLedger, OpenError, Seq,
    chain_hash,
};

use crate::ledger_suite::{append, assert_conforms, read_all, small_options};

fn memory_ledger() -> MemoryLedger {
    MemoryLedger::new(LedgerId([7; 16]))
}

#[test]
fn the_memory_ledger_conforms() {
    assert_conforms(|| Box::new(memory_ledger()));
}

#[test]
fn the_embedded_ledger_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let number = std::cell::Cell::new(0);
    assert_conforms(|| {
        number.set(number.get() + 1);
        let directory = folder.path().join(number.get().to_string());
        Box::new(EmbeddedStore { directory, options: small_options() })
    });
}

/// The ledger on a simulated disk.
#[derive(Debug)]
struct SimulatedStore(FaultyDisk);

impl LedgerStore for SimulatedStore {
    fn open(&self) -> Result<Box<dyn LedgerRecovery>, OpenError> {
        Ok(Box::new(EmbeddedRecovery::begin_on(Arc::new(self.0.clone()), small_options())?))
    }
}

#[test]
fn the_embedded_ledger_conforms_on_a_simulated_disk() {
    assert_conforms(|| Box::new(SimulatedStore(FaultyDisk::new(1))));
}

// S2-5: the ledger is the audit trail, and each batch vouches for all before it.
#[test]
fn memory_and_embedded_ledgers_compute_the_same_hash_chain() {
    let folder = tempfile::tempdir().unwrap();
    let mut embedded = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
    let mut memory = memory_ledger();
    for count in 1..20 {
        assert_eq!(append(&mut embedded, count), append(&mut memory, count));
    }
    assert_eq!(read_all(&embedded), read_all(&memory));
    assert_ne!(chain_hash(embedded.head().hash, b"x"), chain_hash(Head::default().hash, b"x"));
}

#[test]
fn a_batch_larger_than_a_segment_is_rejected_and_the_next_append_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
    let large = EventRecord::new("lease.issued", "", "registrar", vec![7; 4_000]);
    let outcome = ledger.append(Seq(0), &[large], b"");
    assert!(matches!(outcome, Err(AppendError::TooLarge { .. })), "{outcome:?}");
    assert_eq!(append(&mut ledger, 1).seq, Seq(1));
}
