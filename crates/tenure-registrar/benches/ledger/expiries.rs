//! Many leases that end at the very same tick: how long until the last of them is announced.

use std::time::Duration;

use tenure_core::kernel::{Answer, Span};
use tenure_registrar::Reply;
use tenure_registrar::shell::Next;

use crate::clock::{HeldClock, now};
use crate::world::{Data, acquire, acquire_many, open_with};

/// What was measured.
pub struct Expiries {
    pub leases: u64,
    pub announced_within: Duration,
}

pub fn measure(leases: u64) -> Result<Expiries, String> {
    let data = Data::new("expiries")?;
    let clock = HeldClock::new()?;
    let service = open_with(data.path(), clock.clone())?;
    let handle = service.handle();
    let ttl = Span::from_secs(1);
    let numbers: Vec<u64> = (0..leases).collect();
    for part in numbers.chunks(200) {
        let reply = handle.ask_and_wait(acquire_many(part, ttl)).reply;
        if !matches!(reply, Reply::Answered { answer: Answer::Granted { .. }, .. }) {
            return Err(format!("not granted: {reply:?}"));
        }
    }
    let mut subscription = service.feed().subscribe(service.feed().head().seq);
    clock.let_go();
    let over_at = now() + Duration::from_micros(ttl.0);
    // So that the writer looks at its clock again, and sets its timer anew.
    handle.ask_and_wait(acquire(leases + 1, Span::from_secs(3_600)));
    let mut announced = 0;
    while announced < leases {
        match subscription.next(Duration::from_secs(30)) {
            Next::Batch(batch) => {
                let ends = batch.records.iter().filter(|record| record.event_type == "lease.expired");
                announced += ends.count() as u64;
            }
            other => return Err(format!("after {announced} of {leases} ends: {other:?}")),
        }
    }
    let announced_within = now().saturating_sub(over_at);
    service.stop().map_err(|error| error.to_string())?;
    Ok(Expiries { leases, announced_within })
}
