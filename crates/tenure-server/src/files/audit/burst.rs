//! Not more violations than anybody reads: of a burst the first are told, and then how many more there were.

use tenure_core::kernel::{Resource, Span, Tick};

/// From the first violation on, so long it is one burst. Where one follows the other, each lasts twice as long as the one before:
/// a program that writes all day fills no ledger.
const BURST: Span = Span::from_secs(10);
/// But no longer than this.
const LONGEST: Span = Span::from_secs(3_600);
/// So many of it are told one by one.
const MOST: usize = 200;

/// What was told of a burst.
#[derive(Debug)]
pub(super) struct Burst {
    lasts: Span,
    since: Option<Tick>,
    told: usize,
    more: usize,
    last: Option<Resource>,
}

impl Default for Burst {
    fn default() -> Self {
        Self { lasts: BURST, since: None, told: 0, more: 0, last: None }
    }
}

impl Burst {
    /// Whether this one is to be told.
    pub(super) fn is_told(&mut self, resource: &Resource, now: Tick) -> bool {
        self.since.get_or_insert(now);
        if self.told < MOST {
            self.told += 1;
            return true;
        }
        self.more += 1;
        self.last = Some(resource.clone());
        false
    }

    /// Ends a burst when its time is over: the last file of it, and how many were not told.
    pub(super) fn end(&mut self, now: Tick) -> Option<(Resource, usize)> {
        let is_over = self.since.is_some_and(|since| now.since(since) >= self.lasts);
        if !is_over {
            return None;
        }
        let Burst { lasts, more, last, .. } = std::mem::take(self);
        if more > 0 {
            self.lasts = Span(lasts.0.saturating_mul(2)).min(LONGEST);
        }
        last.map(|last| (last, more))
    }

    /// Whether something is left to be said.
    pub(super) fn is_owed(&self) -> bool {
        self.more > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_burst_the_first_are_told_and_then_how_many_more_there_were() {
        let at = |seconds: u64| Tick(Span::from_secs(seconds).0);
        let file = |number: usize| Resource::parse(&format!("FILE:t/{number}")).unwrap();
        let mut burst = Burst::default();
        let told = (0..2_000).filter(|number| burst.is_told(&file(*number), at(1))).count();
        assert_eq!(told, MOST);
        assert!(burst.is_owed());
        assert_eq!(burst.end(at(5)), None);
        assert_eq!(burst.end(at(11)), Some((file(1_999), 2_000 - MOST)));
        assert!(!burst.is_owed() && burst.is_told(&file(1), at(12)), "the next one is told again");
        assert_eq!(burst.end(at(31)), None, "it lasts longer than the one before");
        assert_eq!(burst.end(at(32)), None, "all of it was told");
        assert_eq!(burst.lasts, BURST);
    }
}
