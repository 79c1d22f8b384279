//! One suite that every ledger passes.

use tenure_core::ledger::EventRecord;
use tenure_ledger::embedded::Options;
use tenure_ledger::{AppendError, Batch, EmbeddedLedger, Head, Ledger, MemoryLedger, Seq, chain};

/// Small files, so that a few batches fill several.
pub fn small() -> Options {
    Options { segment_size: 4_096, reserve: 4 * 4_096, witness: None }
}

pub fn event(number: u64) -> EventRecord {
    EventRecord::new("lease.issued", "", "registrar", format!("event {number}").into_bytes())
}

/// Appends a batch of `count` events and says where the ledger ends then.
pub fn append(ledger: &mut dyn Ledger, count: u64) -> Head {
    let at = ledger.head().seq;
    let records: Vec<_> = (1..=count).map(|number| event(at.0 + number)).collect();
    ledger.append(at, &records, b"sealed").expect("a batch that fits is appended")
}

/// Appends `batches` batches of `count` events.
pub fn append_many(ledger: &mut dyn Ledger, batches: u64, count: u64) {
    for _ in 0..batches {
        append(ledger, count);
    }
}

pub fn all(ledger: &dyn Ledger) -> Vec<Batch> {
    ledger.read(Seq(0)).collect::<Result<_, _>>().expect("what was written can be read")
}

fn a_ledger_keeps_order_and_numbers(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.head(), Head::default());
    assert!(all(ledger).is_empty());
    for count in [1, 3, 1, 7, 40, 2] {
        let before = ledger.head().seq.0;
        assert_eq!(append(ledger, count).seq, Seq(before + count));
    }
    let batches = all(ledger);
    assert_eq!(batches.iter().map(|batch| batch.records.len()).collect::<Vec<_>>(), [1, 3, 1, 7, 40, 2]);
    let mut expected = 1;
    for batch in &batches {
        assert_eq!(batch.first, Seq(expected));
        assert_eq!(batch.seal, b"sealed");
        for record in &batch.records {
            assert_eq!(*record, event(expected));
            expected += 1;
        }
    }
    assert_eq!(batches.last().map(|batch| Head { seq: batch.last(), hash: batch.hash }), Some(ledger.head()));
}

fn a_ledger_can_be_read_from_anywhere(ledger: &mut dyn Ledger) {
    append_many(ledger, 20, 3);
    for after in 0..=60 {
        let first = ledger.read(Seq(after)).next().map(|batch| batch.expect("it can be read").last());
        let expected = (after < 60).then(|| Seq(after / 3 * 3 + 3));
        assert_eq!(first, expected, "after {after}");
    }
}

fn a_writer_that_was_overtaken_writes_nothing(ledger: &mut dyn Ledger) {
    append(ledger, 2);
    let head = ledger.head();
    for wrong in [0, 1, 3] {
        let outcome = ledger.append(Seq(wrong), &[event(9)], b"");
        assert!(matches!(outcome, Err(AppendError::Overtaken { found: Seq(2), .. })), "{outcome:?}");
    }
    assert_eq!(ledger.head(), head);
    assert_eq!(all(ledger).len(), 1);
}

fn an_empty_batch_is_nothing(ledger: &mut dyn Ledger) {
    append(ledger, 1);
    let head = ledger.head();
    assert_eq!(ledger.append(head.seq, &[], b"").expect("nothing to do"), head);
    assert_eq!(all(ledger).len(), 1);
}

fn passes(make: impl Fn() -> Box<dyn Ledger>) {
    a_ledger_keeps_order_and_numbers(&mut *make());
    a_ledger_can_be_read_from_anywhere(&mut *make());
    a_writer_that_was_overtaken_writes_nothing(&mut *make());
    an_empty_batch_is_nothing(&mut *make());
}

#[test]
fn the_ledger_in_memory_passes() {
    passes(|| Box::<MemoryLedger>::default());
}

#[test]
fn the_embedded_ledger_passes() {
    let folder = tempfile::tempdir().unwrap();
    let number = std::cell::Cell::new(0);
    passes(|| {
        number.set(number.get() + 1);
        let directory = folder.path().join(number.get().to_string());
        Box::new(EmbeddedLedger::open(&directory, small()).unwrap())
    });
}

// S2-5: the ledger is the audit trail, and each batch vouches for all before it.
#[test]
fn both_ledgers_make_the_same_chain() {
    let folder = tempfile::tempdir().unwrap();
    let mut embedded = EmbeddedLedger::open(folder.path(), small()).unwrap();
    let mut memory = MemoryLedger::default();
    for count in 1..20 {
        assert_eq!(append(&mut embedded, count), append(&mut memory, count));
    }
    assert_eq!(all(&embedded), all(&memory));
    assert_ne!(chain(embedded.head().hash, b"x"), chain(Head::default().hash, b"x"));
}

#[test]
fn a_batch_that_fits_into_no_segment_is_refused_and_the_next_one_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = EmbeddedLedger::open(folder.path(), small()).unwrap();
    let large = EventRecord::new("lease.issued", "", "registrar", vec![7; 4_000]);
    let outcome = ledger.append(Seq(0), &[large], b"");
    assert!(matches!(outcome, Err(AppendError::TooLarge { .. })), "{outcome:?}");
    assert_eq!(append(&mut ledger, 1).seq, Seq(1));
}
