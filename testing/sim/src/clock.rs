//! Clocks that run fast or slow, and begin anew with each boot.

use std::sync::Arc;

use tenure_core::kernel::ClockReading;

/// A machine's clock, seen from the simulation's true time in microseconds.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    id: Arc<str>,
    booted: u64,
    first: u64,
    /// Microseconds that it gains in each true second; negative when it loses.
    drift: i64,
}

const MILLION: i128 = 1_000_000;

impl SimulatedClock {
    /// A clock that began at true time `booted`, saying `first`.
    pub fn new(id: impl Into<Arc<str>>, booted: u64, first: u64, drift: i64) -> Self {
        Self { id: id.into(), booted, first, drift }
    }

    /// The true time at which it began.
    pub fn boot_time(&self) -> u64 {
        self.booted
    }

    /// What it says at true time `now`.
    pub fn microseconds(&self, now: u64) -> u64 {
        let elapsed = i128::from(now.saturating_sub(self.booted));
        let counted = elapsed * (MILLION + i128::from(self.drift)) / MILLION;
        self.first.saturating_add(u64::try_from(counted).unwrap_or(0))
    }

    /// It suddenly says something else: a virtual machine was moved, or its host made it catch up.
    pub fn shift(&mut self, microseconds: i64) {
        self.first = self.first.saturating_add_signed(microseconds);
    }

    /// What it says at true time `now`, and which clock it is.
    pub fn reading(&self, now: u64) -> ClockReading {
        ClockReading { clock: self.id.clone(), microseconds: self.microseconds(now) }
    }

    /// The first true time at which it says `microseconds` or more.
    pub fn true_time_of(&self, microseconds: u64) -> u64 {
        let counted = i128::from(microseconds.saturating_sub(self.first));
        let rate = MILLION + i128::from(self.drift);
        let elapsed = (counted * MILLION + rate - 1) / rate;
        let mut time = self.booted.saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX));
        while self.microseconds(time) < microseconds {
            time += 1;
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_clock_gains_and_a_slow_one_loses() {
        let fast = SimulatedClock::new("fast", 0, 0, 2_000);
        let slow = SimulatedClock::new("slow", 0, 0, -2_000);
        assert_eq!(fast.microseconds(1_000_000), 1_002_000);
        assert_eq!(slow.microseconds(1_000_000), 998_000);
    }

    #[test]
    fn true_time_of_returns_the_first_time_of_a_reading() {
        for drift in [-100_000, -2_400, 0, 2_400, 100_000] {
            let clock = SimulatedClock::new("any", 5_000, 77, drift);
            for reading in [77, 78, 1_000, 999_999, 123_456_789] {
                let time = clock.true_time_of(reading);
                assert!(clock.microseconds(time) >= reading);
                assert!(time == 5_000 || clock.microseconds(time - 1) < reading, "{drift} {reading}");
            }
        }
    }
}
