//! Observers of the feed: which events they are shown, and in which order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_core::kernel::{Command, Fence, HashSeed, LeaseCredential, LeaseRequest, Limits, Resource};
use tenure_core::lease::ReleaseReason;
use tenure_ledger::signing::LedgerSigningKey;
use tenure_ledger::{Ledger as _, MemoryLedger, Seq};
use tenure_registrar::BatchSettings;
use tenure_registrar::runtime::{
    AppliedEvent, BootClock, Feed, Observer, RegistrarService, ServiceOptions, Writer, WriterConfig, replay,
};

use crate::ledger_store::ledger_store;
use crate::runtime::{ManualClock, acquire};
use crate::scenario::LEDGER;

/// Notes what it is told.
#[derive(Default)]
struct RecordingObserver {
    events: Mutex<Vec<(u64, &'static str, usize)>>,
    batches: Mutex<u64>,
}

impl Observer for RecordingObserver {
    fn event_applied(&self, applied: AppliedEvent<'_>) {
        let (kind, leases) = (applied.event.type_name(), applied.state.lease_count());
        self.events.lock().unwrap().push((applied.seq.0, kind, leases));
    }

    fn batch_published(&self, _: Duration) {
        *self.batches.lock().unwrap() += 1;
    }
}

#[test]
fn an_observer_sees_every_event_with_its_sequence_number_and_the_state_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(BootClock::new().unwrap());
    let ledger = ledger_store(folder.path(), 1 << 16, 0);
    let service = RegistrarService::open(folder.path(), &ledger, ServiceOptions::default(), clock).unwrap();
    let notes = Arc::new(RecordingObserver::default());
    let (before, batches) = (service.feed().head().seq.0, service.feed().published_batch_count());
    service.feed().observe(notes.clone());
    let handle = service.handle();
    handle.submit_and_wait(acquire("db:1", "a", 600));
    handle.submit_and_wait(acquire("db:2", "a", 600));
    let reason = ReleaseReason::Completed;
    handle.submit_and_wait(Command::Release { lease: Fence(1), claim: LeaseCredential::Token, reason });
    let events: Vec<_> = notes.events.lock().unwrap().clone();
    assert!(events.iter().zip(before + 1..).all(|((seq, ..), expected)| *seq == expected), "{events:?}");
    let of_leases: Vec<_> = events.iter().filter(|(_, kind, _)| kind.starts_with("lease.")).collect();
    let seen: Vec<_> = of_leases.iter().map(|(_, kind, live)| (*kind, *live)).collect();
    assert_eq!(seen, [("lease.issued", 1), ("lease.issued", 2), ("lease.released", 1)]);
    assert_eq!(*notes.batches.lock().unwrap(), service.feed().published_batch_count() - batches);
    assert_eq!((service.feed().pruned_through(), service.feed().epoch()), (Seq(0), 1));
    service.stop().unwrap();
}

/// Appends the number of each event, with its own name, to a log that several observers share.
struct NamedObserver(&'static str, Arc<Mutex<Vec<(u64, &'static str)>>>);

impl Observer for NamedObserver {
    fn event_applied(&self, applied: AppliedEvent<'_>) {
        self.1.lock().unwrap().push((applied.seq.0, self.0));
    }
}

#[test]
fn all_observers_see_each_event_in_the_order_of_their_registration() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let observer = |name| Arc::new(NamedObserver(name, log.clone()));
    let (ledger, hash_seed) = (Box::new(MemoryLedger::new(LEDGER)), HashSeed::default());
    let replay = replay(&*ledger.reader(), Limits::default(), hash_seed).unwrap();
    let feed = Feed::new(ledger.reader());
    feed.observe(observer("first"));
    feed.observe(observer("second"));
    let key = Arc::new(LedgerSigningKey::from_secret(&[7; 32]));
    let (clock, settings) = (Arc::new(ManualClock::default()), BatchSettings::default());
    let config = WriterConfig { replay, key, clock, settings, hash_seed };
    let writer = Writer::start(ledger, config, feed).unwrap();
    writer.handle().submit_and_wait(acquire("db:1", "a", 600));
    writer.feed().observe(observer("late"));
    let Command::Acquire(mut both) = acquire("db:2", "a", 600) else { unreachable!() };
    let second = LeaseRequest { resource: Resource::parse("db:3").unwrap(), ..both.requests[0].clone() };
    both.requests.push(second);
    writer.handle().submit_and_wait(Command::Acquire(both));
    writer.stop();
    // Event 1 is the key, which the ledger has before the writer starts; 2 is the start of the clock. 4 and 5 are one
    // batch: each of its events is shown to all observers before the next one.
    let before_late = (2..=3).flat_map(|seq| ["first", "second"].map(|name| (seq, name)));
    let after_late = (4..=5).flat_map(|seq| ["first", "second", "late"].map(|name| (seq, name)));
    assert_eq!(*log.lock().unwrap(), before_late.chain(after_late).collect::<Vec<_>>());
}
