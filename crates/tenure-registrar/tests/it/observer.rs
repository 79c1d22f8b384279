//! Who is told of every event, in the moment in which it is told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_core::kernel::{Command, Event, Fence, KernelState, LeaseCredential};
use tenure_core::lease::ReleaseReason;
use tenure_ledger::Seq;
use tenure_registrar::runtime::{BootClock, Observer, RegistrarService, ServiceOptions};

use crate::runtime::acquire;

/// Notes what it is told.
#[derive(Default)]
struct RecordingObserver {
    events: Mutex<Vec<(u64, &'static str, usize)>>,
    batches: Mutex<u64>,
}

impl Observer for RecordingObserver {
    fn before_event(&self, seq: Seq, event: &Event, before: &KernelState) {
        self.events.lock().unwrap().push((seq.0, event.type_name(), before.lease_count()));
    }

    fn batch_published(&self, _: Duration) {
        *self.batches.lock().unwrap() += 1;
    }
}

#[test]
fn an_observer_sees_every_event_with_its_sequence_number_and_prior_state() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(BootClock::new().unwrap());
    let service = RegistrarService::open(folder.path(), ServiceOptions::default(), clock).unwrap();
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
    assert_eq!(seen, [("lease.issued", 0), ("lease.issued", 1), ("lease.released", 2)]);
    assert_eq!(*notes.batches.lock().unwrap(), service.feed().published_batch_count() - batches);
    assert_eq!((service.feed().pruned_through(), service.feed().epoch()), (Seq(0), 1));
    service.stop().unwrap();
}
