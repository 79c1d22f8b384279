//! Clocks of the load generator. Latencies come from the monotonic clock; only expiry compares with the wall clock,
//! because the server names the time of an expiry in it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A reading of the monotonic clock, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    pub fn now() -> Self {
        Self(nanoseconds(ClockId::Monotonic))
    }

    /// The time since `earlier`; zero if that is later than this.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub fn elapsed(self) -> Duration {
        Self::now().since(self)
    }

    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// For an atomic that several tasks share.
    pub fn as_nanos(self) -> u64 {
        self.0
    }

    pub fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }
}

/// The CPU time of this process, all threads together.
pub fn process_cpu_time() -> Duration {
    Duration::from_nanos(nanoseconds(ClockId::ProcessCPUTime))
}

/// The wall clock, since 1970.
pub fn wall_time() -> Duration {
    Duration::from_nanos(nanoseconds(ClockId::Realtime))
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let part = |number: i64| u64::try_from(number).expect("clocks of this machine are after 1970");
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_reading_is_zero_after_a_later_one() {
        let (early, late) = (Instant::from_nanos(5), Instant::from_nanos(5_000));
        assert_eq!(late.since(early), Duration::from_nanos(4_995));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(early.after(Duration::from_nanos(4_995)), late);
    }
}
