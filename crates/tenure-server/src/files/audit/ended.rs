//! Which leases on files ended a moment ago: what was written under them may be seen only now.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::kernel::{FileSession, Resource, Span, Tick};

use crate::files::observer::FileListener;

/// So long a lease explains what is seen after its end.
const MOMENT: Span = Span::from_secs(5);
/// The most that are remembered. What is forgotten explains nothing.
const MOST: usize = 20_000;

/// Leases that ended, by their file: when, and whose process had it.
#[derive(Default)]
pub(crate) struct Ended(Mutex<HashMap<Resource, (Tick, Arc<str>)>>);

impl Ended {
    /// The process that had this a moment ago.
    pub(super) fn had(&self, resource: &Resource, now: Tick) -> Option<Arc<str>> {
        let ended = self.0.lock();
        ended.get(resource).filter(|(at, _)| now.since(*at) < MOMENT).map(|(_, process)| process.clone())
    }

    /// A process that had something below this folder a moment ago.
    pub(super) fn had_below(&self, prefix: &str, now: Tick) -> Option<Arc<str>> {
        let ended = self.0.lock();
        let mut below = ended.iter().filter(|(resource, _)| resource.as_str().starts_with(prefix));
        below.find(|(_, (at, _))| now.since(*at) < MOMENT).map(|(_, (_, process))| process.clone())
    }

    fn note(&self, resource: &Resource, process: &Arc<str>, at: Tick) {
        let mut ended = self.0.lock();
        if ended.len() >= MOST {
            ended.retain(|_, (before, _)| at.since(*before) < MOMENT);
        }
        if ended.len() < MOST {
            ended.insert(resource.clone(), (at, process.clone()));
        }
    }
}

impl FileListener for Ended {
    fn lease_ended(&self, resource: &Resource, session: &FileSession, at: Tick) {
        self.note(resource, &session.process, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick(Span::from_secs(seconds).0)
    }

    #[test]
    fn a_recently_ended_lease_is_known_until_its_retention_ends() {
        let (ended, file) = (Ended::default(), Resource::parse("FILE:t/a/b").unwrap());
        assert_eq!(ended.had(&file, at(0)), None);
        ended.note(&file, &"one".into(), at(10));
        assert_eq!(ended.had(&file, at(12)).as_deref(), Some("one"));
        assert_eq!(ended.had_below("FILE:t/a/", at(12)).as_deref(), Some("one"));
        assert_eq!(ended.had_below("FILE:t/b/", at(12)), None);
        assert_eq!((ended.had(&file, at(15)), ended.had_below("FILE:t/a/", at(15))), (None, None));
    }

    #[test]
    fn entries_are_bounded_and_expired_ones_are_replaced() {
        let ended = Ended::default();
        let name = |number: usize| Resource::parse(&format!("FILE:t/{number}")).unwrap();
        (0..MOST + 5).for_each(|number| ended.note(&name(number), &"one".into(), at(1)));
        assert_eq!(ended.0.lock().len(), MOST);
        assert_eq!(ended.had(&name(MOST), at(1)), None);
        ended.note(&name(MOST), &"one".into(), at(100));
        assert_eq!(ended.0.lock().len(), 1);
        assert!(ended.had(&name(MOST), at(100)).is_some());
    }
}
