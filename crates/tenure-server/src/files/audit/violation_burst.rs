//! Not more violations than anybody reads: of a burst the first are told, each once, and then how many more there were.

use std::collections::HashSet;

use tenure_core::kernel::{Holder, Resource, Tick, TickDuration};

/// From the first violation on, so long it is one burst. Where one follows the other, each lasts twice as long as the one before:
/// a program that writes all day fills no ledger.
const INITIAL_DURATION: TickDuration = TickDuration::from_secs(10);
const MAX_DURATION: TickDuration = TickDuration::from_secs(3_600);
/// After so long a silence, or one that is as long as the last burst, the next one is the first again.
const RESET_AFTER: TickDuration = TickDuration::from_secs(300);
/// So many of it are told one by one.
const MAX_REPORTED: usize = 200;

/// What was told of a burst.
#[derive(Debug)]
pub(super) struct ViolationBurst {
    lasts: TickDuration,
    since: Option<Tick>,
    /// When the one before was over.
    ended: Option<Tick>,
    /// A file that somebody changes again and again is told once.
    reported: HashSet<(Resource, Option<Holder>)>,
    more: usize,
    last: Option<Resource>,
}

impl Default for ViolationBurst {
    fn default() -> Self {
        Self {
            lasts: INITIAL_DURATION,
            since: None,
            ended: None,
            reported: HashSet::new(),
            more: 0,
            last: None,
        }
    }
}

impl ViolationBurst {
    /// Whether this one is to be told. Who changed it, if that is known.
    pub(super) fn should_report(&mut self, resource: &Resource, session: Option<&Holder>, now: Tick) -> bool {
        if self.since.is_none() {
            let follows = self.ended.is_some_and(|ended| now.since(ended) < self.lasts.max(RESET_AFTER));
            self.lasts = if follows {
                TickDuration(self.lasts.0.saturating_mul(2)).min(MAX_DURATION)
            } else {
                INITIAL_DURATION
            };
            self.since = Some(now);
        }
        if self.reported.len() < MAX_REPORTED && self.reported.insert((resource.clone(), session.cloned())) {
            return true;
        }
        self.more += 1;
        self.last = Some(resource.clone());
        false
    }

    /// Ends a burst when its time is over: the last file of it, and how many changes were not told.
    pub(super) fn finish(&mut self, now: Tick) -> Option<(Resource, usize)> {
        let since = self.since.filter(|since| now.since(*since) >= self.lasts)?;
        let ended = Some(Tick(since.0.saturating_add(self.lasts.0)));
        let before = std::mem::replace(self, Self { lasts: self.lasts, ended, ..Self::default() });
        before.last.map(|last| (last, before.more))
    }

    /// Whether something is left to be said.
    pub(super) fn has_unreported(&self) -> bool {
        self.more > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick(TickDuration::from_secs(seconds).0)
    }

    fn file(number: usize) -> Resource {
        Resource::parse(&format!("FILE:t/{number}")).unwrap()
    }

    #[test]
    fn the_first_violations_of_a_burst_are_reported_and_the_rest_counted() {
        let mut burst = ViolationBurst::default();
        let reported = (0..2_000).filter(|number| burst.should_report(&file(*number), None, at(1))).count();
        assert_eq!(reported, MAX_REPORTED);
        assert!(burst.has_unreported());
        assert_eq!(burst.finish(at(5)), None);
        assert_eq!(burst.finish(at(11)), Some((file(1_999), 2_000 - MAX_REPORTED)));
        assert!(
            !burst.has_unreported() && burst.should_report(&file(1), None, at(12)),
            "the next one is told again"
        );
        assert_eq!(burst.finish(at(31)), None, "it lasts longer than the one before");
        assert_eq!((burst.finish(at(32)), burst.since), (None, None), "all of it was told");
        assert!(burst.should_report(&file(1), None, at(400)));
        assert_eq!(burst.lasts, INITIAL_DURATION, "after a silence, all is as at first");
    }

    #[test]
    fn repeated_violations_of_the_same_files_are_reported_at_a_bounded_rate() {
        let mut burst = ViolationBurst::default();
        let mut reported_at = Vec::new();
        for now in (0..86_400).step_by(5).map(at) {
            reported_at.extend(burst.finish(now).map(|_| now));
            reported_at
                .extend((0..95).filter(|number| burst.should_report(&file(*number), None, now)).map(|_| now));
        }
        let until = |end: Tick| reported_at.iter().filter(|now| **now <= end).count();
        assert!((95..=300).contains(&until(at(41))), "{}", until(at(41)));
        assert!((1_000..4_000).contains(&reported_at.len()), "{} in a day", reported_at.len());
    }

    #[test]
    fn a_change_by_another_session_is_reported_as_well() {
        let mut burst = ViolationBurst::default();
        let (one, two) = (Holder::parse("one").unwrap(), Holder::parse("two").unwrap());
        assert!(
            burst.should_report(&file(1), Some(&one), at(1))
                && burst.should_report(&file(1), Some(&two), at(7))
        );
        assert!(
            !burst.should_report(&file(1), Some(&one), at(8)) && burst.should_report(&file(2), None, at(8))
        );
        assert_eq!(burst.finish(at(20)), Some((file(1), 1)));
    }
}
