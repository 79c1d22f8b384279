//! Who is told of every event, in the moment in which it is told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_core::kernel::{Claim, Command, Event, Fence, State};
use tenure_core::lease::ReleaseReason;
use tenure_ledger::Seq;
use tenure_registrar::shell::{BootClock, Observer, Service, ServiceOptions};

use crate::shell::acquire;

/// Notes what it is told.
#[derive(Default)]
struct Notes {
    events: Mutex<Vec<(u64, &'static str, usize)>>,
    batches: Mutex<u64>,
}

impl Observer for Notes {
    fn happens(&self, seq: Seq, event: &Event, before: &State) {
        self.events.lock().unwrap().push((seq.0, event.type_name(), before.live_leases()));
    }

    fn told(&self, _: Duration) {
        *self.batches.lock().unwrap() += 1;
    }
}

#[test]
fn an_observer_sees_every_event_with_its_sequence_number_and_prior_state() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(BootClock::new().unwrap());
    let service = Service::open(folder.path(), ServiceOptions::default(), clock).unwrap();
    let notes = Arc::new(Notes::default());
    let (before, batches) = (service.feed().head().seq.0, service.feed().batches());
    service.feed().observe(notes.clone());
    let handle = service.handle();
    handle.ask_and_wait(acquire("db:1", "a", 600));
    handle.ask_and_wait(acquire("db:2", "a", 600));
    let reason = ReleaseReason::Completed;
    handle.ask_and_wait(Command::Release { lease: Fence(1), claim: Claim::Token, reason });
    let events: Vec<_> = notes.events.lock().unwrap().clone();
    assert!(events.iter().zip(before + 1..).all(|((seq, ..), expected)| *seq == expected), "{events:?}");
    let of_leases: Vec<_> = events.iter().filter(|(_, kind, _)| kind.starts_with("lease.")).collect();
    let seen: Vec<_> = of_leases.iter().map(|(_, kind, live)| (*kind, *live)).collect();
    assert_eq!(seen, [("lease.issued", 0), ("lease.issued", 1), ("lease.released", 2)]);
    assert_eq!(*notes.batches.lock().unwrap(), service.feed().batches() - batches);
    assert_eq!((service.feed().first(), service.feed().epoch()), (Seq(0), 1));
    service.stop().unwrap();
}
