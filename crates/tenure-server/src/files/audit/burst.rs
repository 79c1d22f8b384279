//! Not more violations than anybody reads: of a burst the first are told, each once, and then how many more there were.

use std::collections::HashSet;

use tenure_core::kernel::{Holder, Resource, Span, Tick};

/// From the first violation on, so long it is one burst. Where one follows the other, each lasts twice as long as the one before:
/// a program that writes all day fills no ledger.
const BURST: Span = Span::from_secs(10);
const LONGEST: Span = Span::from_secs(3_600);
/// After so long a silence, or one that is as long as the last burst, the next one is the first again.
const QUIET: Span = Span::from_secs(300);
/// So many of it are told one by one.
const MOST: usize = 200;

/// What was told of a burst.
#[derive(Debug)]
pub(super) struct Burst {
    lasts: Span,
    since: Option<Tick>,
    /// When the one before was over.
    ended: Option<Tick>,
    /// A file that somebody changes again and again is told once.
    told: HashSet<(Resource, Option<Holder>)>,
    more: usize,
    last: Option<Resource>,
}

impl Default for Burst {
    fn default() -> Self {
        Self { lasts: BURST, since: None, ended: None, told: HashSet::new(), more: 0, last: None }
    }
}

impl Burst {
    /// Whether this one is to be told. Who changed it, if that is known.
    pub(super) fn is_told(&mut self, resource: &Resource, session: Option<&Holder>, now: Tick) -> bool {
        if self.since.is_none() {
            let follows = self.ended.is_some_and(|ended| now.since(ended) < self.lasts.max(QUIET));
            self.lasts = if follows { Span(self.lasts.0.saturating_mul(2)).min(LONGEST) } else { BURST };
            self.since = Some(now);
        }
        if self.told.len() < MOST && self.told.insert((resource.clone(), session.cloned())) {
            return true;
        }
        self.more += 1;
        self.last = Some(resource.clone());
        false
    }

    /// Ends a burst when its time is over: the last file of it, and how many changes were not told.
    pub(super) fn end(&mut self, now: Tick) -> Option<(Resource, usize)> {
        let since = self.since.filter(|since| now.since(*since) >= self.lasts)?;
        let ended = Some(Tick(since.0.saturating_add(self.lasts.0)));
        let before = std::mem::replace(self, Self { lasts: self.lasts, ended, ..Self::default() });
        before.last.map(|last| (last, before.more))
    }

    /// Whether something is left to be said.
    pub(super) fn is_owed(&self) -> bool {
        self.more > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick(Span::from_secs(seconds).0)
    }

    fn file(number: usize) -> Resource {
        Resource::parse(&format!("FILE:t/{number}")).unwrap()
    }

    #[test]
    fn the_first_violations_of_a_burst_are_reported_and_the_rest_counted() {
        let mut burst = Burst::default();
        let told = (0..2_000).filter(|number| burst.is_told(&file(*number), None, at(1))).count();
        assert_eq!(told, MOST);
        assert!(burst.is_owed());
        assert_eq!(burst.end(at(5)), None);
        assert_eq!(burst.end(at(11)), Some((file(1_999), 2_000 - MOST)));
        assert!(!burst.is_owed() && burst.is_told(&file(1), None, at(12)), "the next one is told again");
        assert_eq!(burst.end(at(31)), None, "it lasts longer than the one before");
        assert_eq!((burst.end(at(32)), burst.since), (None, None), "all of it was told");
        assert!(burst.is_told(&file(1), None, at(400)));
        assert_eq!(burst.lasts, BURST, "after a silence, all is as at first");
    }

    #[test]
    fn repeated_violations_of_the_same_files_are_reported_at_a_bounded_rate() {
        let mut burst = Burst::default();
        let mut told = Vec::new();
        for now in (0..86_400).step_by(5).map(at) {
            told.extend(burst.end(now).map(|_| now));
            told.extend((0..95).filter(|number| burst.is_told(&file(*number), None, now)).map(|_| now));
        }
        let until = |end: Tick| told.iter().filter(|now| **now <= end).count();
        assert!((95..=300).contains(&until(at(41))), "{}", until(at(41)));
        assert!((1_000..4_000).contains(&told.len()), "{} in a day", told.len());
    }

    #[test]
    fn a_change_by_another_session_is_reported_as_well() {
        let mut burst = Burst::default();
        let (one, two) = (Holder::parse("one").unwrap(), Holder::parse("two").unwrap());
        assert!(burst.is_told(&file(1), Some(&one), at(1)) && burst.is_told(&file(1), Some(&two), at(7)));
        assert!(!burst.is_told(&file(1), Some(&one), at(8)) && burst.is_told(&file(2), None, at(8)));
        assert_eq!(burst.end(at(20)), Some((file(1), 1)));
    }
}
