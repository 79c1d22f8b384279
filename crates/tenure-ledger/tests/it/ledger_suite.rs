//! One suite that every ledger passes, and the small things that tests of ledgers need.

use tenure_core::ledger::EventRecord;
use tenure_ledger::embedded::LedgerOptions;
use tenure_ledger::{AppendError, Batch, Head, Ledger, Seq};

/// What every ledger promises. `make` gives an empty one each time.
pub fn assert_conforms(make: impl Fn() -> Box<dyn Ledger>) {
    check_order_and_numbers(&mut *make());
    check_read_from_any_event(&mut *make());
    check_overtaken_append_writes_nothing(&mut *make());
    check_empty_batch_changes_nothing(&mut *make());
}

/// Small files, so that a few batches fill several.
pub fn small_options() -> LedgerOptions {
    LedgerOptions { segment_size: 4_096, reserve: 4 * 4_096, witness: None }
}

/// An event that can be told from every other.
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

/// Every batch.
pub fn read_all(ledger: &dyn Ledger) -> Vec<Batch> {
    ledger.read(Seq(0)).collect::<Result<_, _>>().expect("what was written can be read")
}

fn check_order_and_numbers(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.head(), Head::default());
    assert!(read_all(ledger).is_empty());
    for count in [1, 3, 1, 7, 40, 2] {
        let before = ledger.head().seq.0;
        assert_eq!(append(ledger, count).seq, Seq(before + count));
    }
    let batches = read_all(ledger);
    assert_eq!(batches.iter().map(|batch| batch.records.len()).collect::<Vec<_>>(), [1, 3, 1, 7, 40, 2]);
    let mut expected = 1;
    for batch in &batches {
        assert_eq!(batch.first, Seq(expected));
        assert_eq!(batch.signature, b"sealed");
        for record in &batch.records {
            assert_eq!(*record, event(expected));
            expected += 1;
        }
    }
    assert_eq!(batches.last().map(|batch| Head { seq: batch.last(), hash: batch.hash }), Some(ledger.head()));
}

fn check_read_from_any_event(ledger: &mut dyn Ledger) {
    append_many(ledger, 20, 3);
    for after in 0..=60 {
        let first = ledger.read(Seq(after)).next().map(|batch| batch.expect("it can be read").last());
        let expected = (after < 60).then(|| Seq(after / 3 * 3 + 3));
        assert_eq!(first, expected, "after {after}");
    }
}

fn check_overtaken_append_writes_nothing(ledger: &mut dyn Ledger) {
    append(ledger, 2);
    let head = ledger.head();
    for wrong in [0, 1, 3] {
        let outcome = ledger.append(Seq(wrong), &[event(9)], b"");
        assert!(matches!(outcome, Err(AppendError::Overtaken { found: Seq(2), .. })), "{outcome:?}");
    }
    assert_eq!(ledger.head(), head);
    assert_eq!(read_all(ledger).len(), 1);
}

fn check_empty_batch_changes_nothing(ledger: &mut dyn Ledger) {
    append(ledger, 1);
    let head = ledger.head();
    assert_eq!(ledger.append(head.seq, &[], b"").expect("nothing to do"), head);
    assert_eq!(read_all(ledger).len(), 1);
}
