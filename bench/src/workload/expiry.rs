//! How late the end of a lease is announced, to a client that watches `lease.expired` over `/v1/stream`.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::timeout;

use super::lease_pool::{self, Retention};
use crate::cli::Sizes;
use crate::clock::{Instant, wall_time};
use crate::error::BenchError;
use crate::latency::LatencyHistogram;
use crate::peer::launcher::RunningServer;
use crate::peer::tenure_stream::TenureStream;

/// Leases that a server surely grants in a second: the first lease ends after all are acquired.
const MIN_ACQUIRES_PER_SECOND: usize = 5_000;
const MIN_LEAD: Duration = Duration::from_secs(3);
/// When nothing was announced for this long, everything is counted.
const SILENCE: Duration = Duration::from_secs(2);
/// Messages that announce nothing new are waited for at most this long behind the last end.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Over which time the leases end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    Spread(Duration),
    Together,
}

pub struct ExpiryMeasurement {
    /// From the time at which a lease expires to that at which the client has the event, which names the first in
    /// milliseconds.
    pub lateness: LatencyHistogram,
    /// Between the first and the last end.
    pub due_within: Duration,
    /// From the first end to the last event.
    pub announced_within: Duration,
}

#[derive(Deserialize)]
struct WatchMessage<'a> {
    #[serde(borrow)]
    event: Option<WatchEvent<'a>>,
}

#[derive(Deserialize)]
struct WatchEvent<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    lease: Option<ExpiredLease<'a>>,
}

#[derive(Deserialize)]
struct ExpiredLease<'a> {
    id: &'a str,
    #[serde(rename = "expiresAt")]
    expires_at: &'a str,
}

/// Measures one run on a server without other leases.
pub async fn run(server: &RunningServer, sizes: &Sizes, ends: Ends) -> Result<ExpiryMeasurement, BenchError> {
    let mut watcher = TenureStream::connect(server, usize::MAX).await?;
    watcher.watch("lease.expired").await?;
    let count = sizes.expiring;
    let lead = MIN_LEAD + Duration::from_secs((count / MIN_ACQUIRES_PER_SECOND) as u64);
    let (first_end, window) = (Instant::now().after(lead), ends.window());
    let ttl = move |lease: usize| {
        let end = first_end.after(window.mul_f64(lease as f64 / count as f64));
        end.since(Instant::now())
    };
    drop(lease_pool::acquire(server, "expiring", count, Retention::Drop, ttl).await?);
    if first_end.since(Instant::now()) == Duration::ZERO {
        let problem = format!("{count} leases could not be acquired within {lead:?}");
        return Err(BenchError::environment(problem, "choose fewer with --expiring"));
    }
    let messages = receive(&mut watcher, first_end.after(window)).await?;
    summarise(&messages, count)
}

impl Ends {
    fn window(self) -> Duration {
        match self {
            Self::Spread(window) => window,
            Self::Together => Duration::ZERO,
        }
    }
}

/// A message of the watch as it came, and when. It is parsed later: parsing would delay the next one.
struct ReceivedMessage {
    /// On the wall clock, in which the server names the end.
    at: Duration,
    text: Vec<u8>,
}

async fn receive(watcher: &mut TenureStream, last_end: Instant) -> Result<Vec<ReceivedMessage>, BenchError> {
    let mut messages = Vec::new();
    loop {
        let keep = |text: &[u8]| Ok(ReceivedMessage { at: wall_time(), text: text.to_vec() });
        match timeout(SILENCE, watcher.receive_message(keep)).await {
            Ok(message) => messages.push(message?),
            Err(_) if last_end.elapsed() > SILENCE => return Ok(messages),
            Err(_) => {}
        }
        if last_end.elapsed() > MAX_WAIT {
            return Err(BenchError::unexpected("a watch", "events a minute after the last end"));
        }
    }
}

fn summarise(messages: &[ReceivedMessage], count: usize) -> Result<ExpiryMeasurement, BenchError> {
    let mut lateness = LatencyHistogram::default();
    let (mut ids, mut first_due, mut last_due) = (Vec::with_capacity(count), Duration::MAX, Duration::ZERO);
    let mut last_announced = Duration::ZERO;
    for message in messages {
        let unexpected = || BenchError::unexpected("a watch", &message.text);
        let events: Vec<WatchMessage<'_>> =
            serde_json::from_slice(&message.text).map_err(|_| unexpected())?;
        for event in events.iter().filter_map(|message| message.event.as_ref()) {
            let lease =
                event.lease.as_ref().filter(|_| event.r#type == "lease.expired").ok_or_else(unexpected)?;
            let due: Timestamp = lease.expires_at.parse().map_err(|_| unexpected())?;
            let due = Duration::from_nanos(u64::try_from(due.as_nanosecond()).map_err(|_| unexpected())?);
            lateness.record(message.at.saturating_sub(due));
            (first_due, last_due) = (first_due.min(due), last_due.max(due));
            last_announced = message.at;
            ids.push(lease.id);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    if ids.len() != count || lateness.count() != count as u64 {
        let found = format!("{} events for {} leases of {count}", lateness.count(), ids.len());
        return Err(BenchError::unexpected("a watch", found));
    }
    Ok(ExpiryMeasurement {
        lateness,
        due_within: last_due.saturating_sub(first_due),
        announced_within: last_announced.saturating_sub(first_due),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(at_ms: u64, text: &str) -> ReceivedMessage {
        ReceivedMessage { at: Duration::from_millis(at_ms), text: text.as_bytes().to_vec() }
    }

    fn event(id: &str, milliseconds: u32) -> String {
        format!(
            r#"{{"id":0,"event":{{"type":"lease.expired","lease":{{"id":"{id}","expiresAt":"1970-01-01T00:00:01.{milliseconds:03}Z"}}}}}}"#
        )
    }

    #[test]
    fn lateness_is_the_receipt_minus_the_end_that_the_event_names() {
        let messages = [
            message(1_005, &format!("[{}]", event("a-1", 0))),
            message(1_100, r#"[{"id":0,"at":"0-9"}]"#),
            message(1_250, &format!("[{},{}]", event("a-2", 230), event("a-3", 240))),
        ];
        let measured = summarise(&messages, 3).unwrap();
        assert_eq!(measured.lateness.count(), 3);
        assert_eq!(measured.lateness.max(), Duration::from_millis(20));
        assert_eq!(measured.due_within, Duration::from_millis(240));
        assert_eq!(measured.announced_within, Duration::from_millis(250));
    }

    #[test]
    fn missing_and_repeated_events_fail_the_run() {
        let once = message(1_005, &format!("[{}]", event("a-1", 0)));
        assert!(summarise(std::slice::from_ref(&once), 2).is_err());
        let twice = message(1_005, &format!("[{},{}]", event("a-1", 0), event("a-1", 0)));
        assert!(summarise(&[twice], 1).is_err());
        let resync = message(1_005, r#"[{"id":0,"event":{"type":"resync"}}]"#);
        assert!(summarise(&[resync], 0).is_err());
    }
}
