//! How long the live leases are, as coarsely as is needed to say how often time must be marked.

use crate::kernel::value::{Span, TICK_RATE_HZ};

/// Live leases counted by a hundredth of their length, in whole seconds from 1 to 60.
#[derive(Debug, Clone)]
pub(crate) struct Lengths([usize; MOST_SECONDS]);

/// Never less often than every minute.
const MOST_SECONDS: usize = 60;

impl Default for Lengths {
    fn default() -> Self {
        Self([0; MOST_SECONDS])
    }
}

impl Lengths {
    pub(crate) fn add(&mut self, ttl: Span) {
        self.0[bucket(ttl)] += 1;
    }

    pub(crate) fn remove(&mut self, ttl: Span) {
        self.0[bucket(ttl)] -= 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().sum()
    }

    pub(crate) fn mark_interval(&self) -> Option<Span> {
        let shortest = self.0.iter().position(|count| *count > 0)?;
        Some(Span((shortest as u64 + 1) * TICK_RATE_HZ))
    }
}

/// Rounded down, so that a mark is never too late; never more often than every second.
fn bucket(ttl: Span) -> usize {
    let seconds = usize::try_from(ttl.0 / 100 / TICK_RATE_HZ).unwrap_or(MOST_SECONDS);
    seconds.clamp(1, MOST_SECONDS) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_active_ttl_sets_the_mark_interval() {
        let mut lengths = Lengths::default();
        assert_eq!(lengths.mark_interval(), None);
        lengths.add(Span::from_secs(24 * 3600));
        assert_eq!(lengths.mark_interval(), Some(Span::from_secs(60)));
        lengths.add(Span::from_secs(1_000));
        assert_eq!(lengths.mark_interval(), Some(Span::from_secs(10)));
        lengths.add(Span::from_secs(5));
        assert_eq!(lengths.mark_interval(), Some(Span::from_secs(1)));
        lengths.remove(Span::from_secs(5));
        assert_eq!(lengths.mark_interval(), Some(Span::from_secs(10)));
    }
}
