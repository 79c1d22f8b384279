//! One suite that every ledger passes, and the small things that tests of ledgers need.

use std::thread;
use std::time::Duration;

use tenure_core::kernel::{
    ClockAnchor, ClockReading, EncodeContext, Event, LedgerTag, Tick, TickDuration, encode,
};
use tenure_core::ledger::EventRecord;
use tenure_ledger::embedded::LedgerOptions;
use tenure_ledger::signing::LedgerSigningKey;
use tenure_ledger::{
    AppendError, Batch, Checkpoint, CheckpointParts, Head, Ledger, LedgerReader, LedgerStore, ReadError,
    Retention, Seq, SpaceLevel,
};

type Check = fn(&dyn LedgerStore);

/// What every ledger promises. Each check begins with an empty store.
const CHECKS: [(&str, Check); 15] = [
    ("events keep their order and their numbers", check_order_and_numbers),
    ("a read begins after any event", check_read_from_any_event),
    ("an append at another head writes nothing", check_overtaken_append_writes_nothing),
    ("of two writers the second to append is overtaken", check_second_writer),
    ("an empty batch changes nothing", check_empty_batch_changes_nothing),
    ("a reader follows the writer", check_reader_follows_the_writer),
    ("a reader beside a busy writer sees each durable batch once", check_concurrent_reader),
    ("a checkpoint replaces the one before", check_checkpoints),
    ("a start goes on from the newest checkpoint", check_start_from_a_checkpoint),
    ("nothing is pruned without a checkpoint", check_prune_without_a_checkpoint),
    ("pruned events are out of range", check_prune),
    ("old events exceed the retention", check_retention_by_age),
    ("space is prepared beside the writer", check_space),
    ("a wake ends a wait for work", check_wake),
    ("a closed ledger can be read and opened again", check_close),
];

/// Runs every check on a ledger of its own. `make` returns an empty store each time.
pub fn assert_conforms(make: impl Fn() -> Box<dyn LedgerStore>) {
    for (promise, check) in CHECKS {
        println!("{promise}");
        check(&*make());
    }
}

/// Small files, so that a few batches fill several.
pub fn small_options() -> LedgerOptions {
    LedgerOptions { segment_size: 4_096, reserve: Some(4 * 4_096), witness: None }
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
    read_after(&*ledger.reader(), Seq(0))
}

/// A checkpoint whose state is `state`.
pub fn checkpoint_bytes(reader: &dyn LedgerReader, head: Head, state: &[u8]) -> Vec<u8> {
    let parts = CheckpointParts { ledger: reader.ledger(), epoch: reader.epoch(), head, keys: &[], state };
    Checkpoint::write(parts, &LedgerSigningKey::from_secret(&[7; 32]))
}

fn open(store: &dyn LedgerStore) -> Box<dyn Ledger> {
    store.open().expect("it opens").finish().expect("it is whole")
}

fn read_after(reader: &dyn LedgerReader, after: Seq) -> Vec<Batch> {
    reader.read(after).collect::<Result<_, _>>().expect("what was written can be read")
}

/// Stores a checkpoint of everything that was appended.
fn store_checkpoint(ledger: &dyn Ledger, state: &[u8]) -> Head {
    let head = ledger.head();
    let bytes = checkpoint_bytes(&*ledger.reader(), head, state);
    ledger.maintenance().store_checkpoint(head, &bytes).expect("there is space for a checkpoint");
    head
}

/// Keeps as little as it may.
const NOTHING: Retention = Retention { age: TickDuration::from_secs(1 << 30), bytes: 1 };

fn check_order_and_numbers(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    assert_eq!(ledger.head(), Head::default());
    assert!(read_all(&*ledger).is_empty());
    for count in [1, 3, 1, 7, 40, 2] {
        let before = ledger.head().seq.0;
        assert_eq!(append(&mut *ledger, count).seq, Seq(before + count));
    }
    let batches = read_all(&*ledger);
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
    assert_eq!(batches.last().map(Batch::head), Some(ledger.head()));
}

fn check_read_from_any_event(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    append_many(&mut *ledger, 20, 3);
    let reader = ledger.reader();
    for after in 0..=60 {
        let first = reader.read(Seq(after)).next().map(|batch| batch.expect("it can be read").last());
        let expected = (after < 60).then(|| Seq(after / 3 * 3 + 3));
        assert_eq!(first, expected, "after {after}");
    }
    assert!(read_after(&*reader, Seq(1_000)).is_empty(), "nothing is there yet");
}

fn check_overtaken_append_writes_nothing(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    append(&mut *ledger, 2);
    let head = ledger.head();
    for wrong in [0, 1, 3] {
        let outcome = ledger.append(Seq(wrong), &[event(9)], b"");
        assert!(matches!(outcome, Err(AppendError::Overtaken { found: Seq(2), .. })), "{outcome:?}");
    }
    assert_eq!(ledger.head(), head);
    assert_eq!(read_all(&*ledger).len(), 1);
}

fn check_second_writer(store: &dyn LedgerStore) {
    let mut first = open(store);
    append(&mut *first, 2);
    // A ledger that lets nobody else in keeps the promise too.
    let Ok(second) = store.open() else { return };
    let mut second = second.finish().expect("it is whole");
    assert_eq!(append(&mut *second, 3).seq, Seq(5));
    let outcome = first.append(Seq(2), &[event(9)], b"");
    let expected = matches!(outcome, Err(AppendError::Overtaken { expected: Seq(2), found: Seq(5) }));
    assert!(expected, "{outcome:?}");
    assert_eq!(read_all(&*first).len(), 2);
}

fn check_empty_batch_changes_nothing(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    append(&mut *ledger, 1);
    let head = ledger.head();
    assert_eq!(ledger.append(head.seq, &[], b"").expect("nothing to do"), head);
    assert_eq!(read_all(&*ledger).len(), 1);
}

fn check_reader_follows_the_writer(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    let reader = ledger.reader();
    assert_eq!((reader.head(), reader.pruned_through()), (Head::default(), Seq(0)));
    for count in 1..30 {
        let after = ledger.head().seq;
        let head = append(&mut *ledger, count);
        assert_eq!(reader.head(), head);
        let read = read_after(&*reader, after);
        assert_eq!(read.iter().map(Batch::head).collect::<Vec<_>>(), [head], "only what is new");
    }
}

fn check_concurrent_reader(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    let reader = ledger.reader();
    let follower = thread::spawn(move || {
        let mut followed: Vec<Batch> = Vec::new();
        while followed.len() < 60 {
            let after = followed.last().map_or(Seq(0), Batch::last);
            let read = read_after(&*reader, after);
            let newest = read.last().map_or(after, Batch::last);
            assert!(newest <= reader.head().seq, "a batch that is not durable");
            followed.extend(read);
        }
        followed
    });
    append_many(&mut *ledger, 60, 2);
    assert_eq!(follower.join().expect("the reader reads"), read_all(&*ledger));
}

fn check_checkpoints(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    let (reader, maintenance) = (ledger.reader(), ledger.maintenance());
    assert!(reader.newest_checkpoint().expect("none").is_none());
    assert_eq!(maintenance.newest_checkpoint_head(), Head::default());
    for state in ["first", "second", "third"] {
        append_many(&mut *ledger, 3, 2);
        let head = store_checkpoint(&*ledger, state.as_bytes());
        let found = reader.newest_checkpoint().expect("it can be read").expect("it is there");
        assert_eq!((found.header.head, found.state()), (head, state.as_bytes()));
        assert_eq!(maintenance.newest_checkpoint_head(), head);
    }
}

fn check_start_from_a_checkpoint(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    append_many(&mut *ledger, 5, 4);
    let at = store_checkpoint(&*ledger, b"all of it");
    append_many(&mut *ledger, 3, 4);
    let (id, head) = (ledger.reader().ledger(), ledger.head());
    // Without an orderly end: what was acknowledged is there all the same.
    drop(ledger);
    let mut recovery = store.open().expect("it opens");
    assert_eq!(recovery.ledger(), id);
    assert!(recovery.warnings().is_empty());
    let checkpoint = recovery.take_checkpoint().expect("a checkpoint");
    assert_eq!((checkpoint.header.head, checkpoint.state()), (at, &b"all of it"[..]));
    let mut found = Vec::new();
    while let Some(batch) = recovery.next_batch().expect("it is whole") {
        found.push(batch);
    }
    let ledger = recovery.finish().expect("it is whole");
    assert_eq!(ledger.head(), head);
    assert_eq!(found, read_after(&*ledger.reader(), at.seq), "what is behind the checkpoint, and no more");
    assert_eq!(found.len(), 3);
}

fn check_prune_without_a_checkpoint(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    append_many(&mut *ledger, 40, 3);
    let maintenance = ledger.maintenance();
    assert!(maintenance.is_retention_exceeded(NOTHING, Tick(0)).expect("it can be read"));
    maintenance.prune(NOTHING, Tick(0)).expect("nothing to do");
    assert_eq!((ledger.reader().pruned_through(), read_all(&*ledger).len()), (Seq(0), 40));
}

fn check_prune(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    for state in ["first", "second"] {
        append_many(&mut *ledger, 40, 3);
        store_checkpoint(&*ledger, state.as_bytes());
    }
    append_many(&mut *ledger, 5, 3);
    let (reader, maintenance) = (ledger.reader(), ledger.maintenance());
    let before = read_all(&*ledger);
    maintenance.prune(Retention::default(), Tick(0)).expect("nothing to do");
    assert_eq!(reader.pruned_through(), Seq(0), "what is to be kept is kept");

    maintenance.prune(NOTHING, Tick(0)).expect("it can be removed");
    let first = reader.pruned_through();
    assert!(first > Seq(0), "something could go");
    assert!(first <= maintenance.newest_checkpoint_head().seq, "a start needs what is behind its checkpoint");
    for after in [0, first.0 - 1] {
        let read: Vec<_> = reader.read(Seq(after)).collect();
        let [Err(ReadError::OutOfRange { requested, first: found })] = &read[..] else { panic!("{read:?}") };
        assert_eq!((*requested, *found), (Seq(after), first));
    }
    let rest: Vec<_> = before.into_iter().filter(|batch| batch.last() > first).collect();
    assert_eq!(read_after(&*reader, first), rest);

    append(&mut *ledger, 2);
    let head = ledger.head();
    drop(ledger);
    let ledger = open(store);
    assert_eq!((ledger.head(), ledger.reader().pruned_through()), (head, first));
}

fn check_retention_by_age(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    let tag = ledger.reader().ledger().tag();
    for second in 1..=100 {
        let record = clock_mark(tag, Tick(second * 1_000_000));
        ledger.append(ledger.head().seq, &[record], b"").expect("a batch that fits is appended");
    }
    let maintenance = ledger.maintenance();
    let retention = Retention { age: TickDuration::from_secs(500), bytes: u64::MAX };
    let is_exceeded = |now| maintenance.is_retention_exceeded(retention, now).expect("it can be read");
    assert!(!is_exceeded(Tick(400_000_000)));
    assert!(is_exceeded(Tick(601_000_000)));
}

fn clock_mark(tag: LedgerTag, at: Tick) -> EventRecord {
    let event = Event::Marked { at, reading: ClockReading { clock: "clock".into(), microseconds: at.0 } };
    encode(&event, EncodeContext { tag, anchor: ClockAnchor::default(), signature: &[] })
}

fn check_space(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    let maintenance = ledger.maintenance();
    for _ in 0..5 {
        maintenance.prepare_space().expect("there is space");
        assert_eq!(ledger.space_level(0), SpaceLevel::Plenty);
        append_many(&mut *ledger, 10, 3);
    }
    assert!(ledger.max_batch_bytes() > 0);
    assert_eq!(read_all(&*ledger).len(), 50);
}

fn check_wake(store: &dyn LedgerStore) {
    let maintenance = open(store).maintenance();
    // There may be work at first; without any, only a wake ends the long wait.
    maintenance.wait_for_work(Duration::ZERO);
    maintenance.wake();
    maintenance.wait_for_work(Duration::from_secs(3_600));
}

fn check_close(store: &dyn LedgerStore) {
    let mut ledger = open(store);
    append_many(&mut *ledger, 20, 3);
    let (reader, before) = (ledger.reader(), read_all(&*ledger));
    ledger.close().expect("an orderly end");
    assert_eq!(read_after(&*reader, Seq(0)), before);
    let mut ledger = open(store);
    assert_eq!(ledger.head(), reader.head());
    assert_eq!((ledger.reader().ledger(), ledger.reader().epoch()), (reader.ledger(), reader.epoch()));
    append(&mut *ledger, 1);
    assert_eq!(read_all(&*ledger)[..20], before);
}
