//! Many leases that end at the very same tick: how long until the last of them is announced.

use std::time::Duration;

use tenure_core::kernel::{CommandOutcome, TickDuration};
use tenure_registrar::Reply;
use tenure_registrar::runtime::FeedItem;

use crate::time::{PausedClock, monotonic_now};
use crate::workload::{DataDirectory, acquire, acquire_many, open_with};

/// What was measured.
pub struct ExpiryMeasurements {
    pub leases: u64,
    pub announced_within: Duration,
}

pub fn measure(leases: u64) -> Result<ExpiryMeasurements, String> {
    let data = DataDirectory::new("expiries")?;
    let clock = PausedClock::new()?;
    let service = open_with(data.path(), clock.clone())?;
    let handle = service.handle();
    let ttl = TickDuration::from_secs(1);
    let numbers: Vec<u64> = (0..leases).collect();
    for part in numbers.chunks(200) {
        let reply = handle.submit_and_wait(acquire_many(part, ttl)).reply;
        if !matches!(reply, Reply::Answered { answer: CommandOutcome::Granted { .. }, .. }) {
            return Err(format!("not granted: {reply:?}"));
        }
    }
    let mut subscription = service.feed().subscribe(service.feed().head().seq);
    clock.resume();
    let expires_at = monotonic_now() + Duration::from_micros(ttl.0);
    // So that the writer looks at its clock again, and sets its timer anew.
    handle.submit_and_wait(acquire(leases + 1, TickDuration::from_secs(3_600)));
    let mut announced = 0;
    while announced < leases {
        match subscription.next(Duration::from_secs(30)) {
            FeedItem::Batch(batch) => {
                let ends = batch.records.iter().filter(|record| record.event_type == "lease.expired");
                announced += ends.count() as u64;
            }
            other => return Err(format!("after {announced} of {leases} ends: {other:?}")),
        }
    }
    let announced_within = monotonic_now().saturating_sub(expires_at);
    service.stop().map_err(|error| error.to_string())?;
    Ok(ExpiryMeasurements { leases, announced_within })
}
