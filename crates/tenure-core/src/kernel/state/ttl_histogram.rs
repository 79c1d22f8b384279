//! How long the live leases are, as coarsely as is needed to say how often time must be marked.

use crate::kernel::newtypes::{TICK_RATE_HZ, TickDuration};

/// Live leases counted by a hundredth of their length, in whole seconds from 1 to 60.
#[derive(Debug, Clone)]
pub(crate) struct TtlHistogram([usize; MAX_SECONDS]);

/// Never less often than every minute.
const MAX_SECONDS: usize = 60;

impl Default for TtlHistogram {
    fn default() -> Self {
        Self([0; MAX_SECONDS])
    }
}

impl TtlHistogram {
    pub(crate) fn add(&mut self, ttl: TickDuration) {
        self.0[bucket(ttl)] += 1;
    }

    pub(crate) fn remove(&mut self, ttl: TickDuration) {
        self.0[bucket(ttl)] -= 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().sum()
    }

    pub(crate) fn clock_mark_interval(&self) -> Option<TickDuration> {
        let shortest = self.0.iter().position(|count| *count > 0)?;
        Some(TickDuration((shortest as u64 + 1) * TICK_RATE_HZ))
    }
}

/// Rounded down, so that a mark is never too late; never more often than every second.
fn bucket(ttl: TickDuration) -> usize {
    let seconds = usize::try_from(ttl.0 / 100 / TICK_RATE_HZ).unwrap_or(MAX_SECONDS);
    seconds.clamp(1, MAX_SECONDS) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_active_ttl_sets_the_mark_interval() {
        let mut histogram = TtlHistogram::default();
        assert_eq!(histogram.clock_mark_interval(), None);
        histogram.add(TickDuration::from_secs(24 * 3600));
        assert_eq!(histogram.clock_mark_interval(), Some(TickDuration::from_secs(60)));
        histogram.add(TickDuration::from_secs(1_000));
        assert_eq!(histogram.clock_mark_interval(), Some(TickDuration::from_secs(10)));
        histogram.add(TickDuration::from_secs(5));
        assert_eq!(histogram.clock_mark_interval(), Some(TickDuration::from_secs(1)));
        histogram.remove(TickDuration::from_secs(5));
        assert_eq!(histogram.clock_mark_interval(), Some(TickDuration::from_secs(10)));
    }
}
