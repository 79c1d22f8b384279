//! Which leases on files ended a moment ago: what was written under them may be seen only now.

use std::collections::HashMap;

use parking_lot::Mutex;
use tenure_core::kernel::{FileSession, RecordedProcess, Resource, Tick, TickDuration};

use crate::files::file_event_observer::FileEventListener;

/// So long a lease explains what is seen after its end.
const RETENTION: TickDuration = TickDuration::from_secs(5);
/// The most that are remembered. What is forgotten explains nothing.
const MAX_ENTRIES: usize = 20_000;

/// Leases that ended, by their file: when, and whose process had it.
#[derive(Default)]
pub(crate) struct RecentlyEndedLeases(Mutex<HashMap<Resource, (Tick, RecordedProcess)>>);

impl RecentlyEndedLeases {
    /// The process that had this a moment ago.
    pub(super) fn last_process(&self, resource: &Resource, now: Tick) -> Option<RecordedProcess> {
        let ended = self.0.lock();
        ended.get(resource).filter(|(at, _)| now.since(*at) < RETENTION).map(|(_, process)| process.clone())
    }

    /// A process that had something below this folder a moment ago.
    pub(super) fn last_process_below(&self, prefix: &str, now: Tick) -> Option<RecordedProcess> {
        let ended = self.0.lock();
        let mut below = ended.iter().filter(|(resource, _)| resource.as_str().starts_with(prefix));
        below.find(|(_, (at, _))| now.since(*at) < RETENTION).map(|(_, (_, process))| process.clone())
    }

    fn record(&self, resource: &Resource, process: &RecordedProcess, at: Tick) {
        let mut ended = self.0.lock();
        if ended.len() >= MAX_ENTRIES {
            ended.retain(|_, (before, _)| at.since(*before) < RETENTION);
        }
        if ended.len() < MAX_ENTRIES {
            ended.insert(resource.clone(), (at, process.clone()));
        }
    }
}

impl FileEventListener for RecentlyEndedLeases {
    fn lease_ended(&self, resource: &Resource, session: &FileSession, at: Tick) {
        self.record(resource, &session.process, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> RecordedProcess {
        RecordedProcess::parse("one").unwrap()
    }

    fn at(seconds: u64) -> Tick {
        Tick(TickDuration::from_secs(seconds).0)
    }

    #[test]
    fn a_recently_ended_lease_is_known_until_its_retention_ends() {
        let (ended, file) = (RecentlyEndedLeases::default(), Resource::parse("FILE:t/a/b").unwrap());
        assert_eq!(ended.last_process(&file, at(0)), None);
        ended.record(&file, &one(), at(10));
        assert_eq!(ended.last_process(&file, at(12)), Some(one()));
        assert_eq!(ended.last_process_below("FILE:t/a/", at(12)), Some(one()));
        assert_eq!(ended.last_process_below("FILE:t/b/", at(12)), None);
        assert_eq!(
            (ended.last_process(&file, at(15)), ended.last_process_below("FILE:t/a/", at(15))),
            (None, None)
        );
    }

    #[test]
    fn entries_are_bounded_and_expired_ones_are_replaced() {
        let ended = RecentlyEndedLeases::default();
        let name = |number: usize| Resource::parse(&format!("FILE:t/{number}")).unwrap();
        (0..MAX_ENTRIES + 5).for_each(|number| ended.record(&name(number), &one(), at(1)));
        assert_eq!(ended.0.lock().len(), MAX_ENTRIES);
        assert_eq!(ended.last_process(&name(MAX_ENTRIES), at(1)), None);
        ended.record(&name(MAX_ENTRIES), &one(), at(100));
        assert_eq!(ended.0.lock().len(), 1);
        assert!(ended.last_process(&name(MAX_ENTRIES), at(100)).is_some());
    }
}
