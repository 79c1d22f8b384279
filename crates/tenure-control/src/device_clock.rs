//! The device's own clock: milliseconds since it started, in 32 bits. It wraps after 49.7 days.

use serde::Serialize;
use tenure_core::kernel::{Tick, TickDuration};

/// A moment on the device's clock. Two of them can only be compared by how far apart they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DeviceInstant(pub u32);

impl DeviceInstant {
    /// How many milliseconds from `earlier` to this, also across the wrap.
    pub const fn since(self, earlier: DeviceInstant) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this is at or after `moment`, of two that are less than 24.8 days apart.
    pub const fn has_reached(self, moment: DeviceInstant) -> bool {
        self.since(moment) < 1 << 31
    }
}

/// What the device's clock says at a tick.
#[derive(Debug, Clone, Copy)]
pub struct DeviceClock {
    started: Tick,
    millis_at_start: u32,
}

impl DeviceClock {
    /// A clock that says `at_start` at the tick `started`.
    pub const fn new(started: Tick, millis_at_start: u32) -> Self {
        Self { started, millis_at_start }
    }

    pub const fn started(self) -> Tick {
        self.started
    }

    /// What it says at `now`.
    pub fn at(self, now: Tick) -> DeviceInstant {
        DeviceInstant(self.millis_at_start.wrapping_add(low(self.elapsed_ms(now))))
    }

    /// Milliseconds since the start, which do not wrap: for everything inside.
    pub fn elapsed_ms(self, now: Tick) -> u64 {
        now.since(self.started).0 / 1_000
    }
}

/// Whole milliseconds of a span. What is left of a millisecond does not count: nobody is told more than the truth.
pub fn whole_millis(span: TickDuration) -> u32 {
    u32::try_from(span.0 / 1_000).unwrap_or(u32::MAX)
}

/// The lower 32 bits: a clock of 32 bits wraps.
#[expect(clippy::cast_possible_truncation, reason = "that is what wrapping is")]
const fn low(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    // S0-15
    #[test]
    fn time_differences_survive_the_clock_wrap() {
        let uptime = DeviceClock::new(Tick(5_000_000), u32::MAX - 2_999);
        let before = uptime.at(Tick(5_000_000));
        let after = uptime.at(Tick(8_500_000));
        assert_eq!((before, after), (DeviceInstant(u32::MAX - 2_999), DeviceInstant(500)));
        assert_eq!(after.since(before), 3_500);
        assert!(after.has_reached(before) && !before.has_reached(after) && before.has_reached(before));
        assert_eq!(uptime.elapsed_ms(Tick(8_500_000)), 3_500);
    }

    #[test]
    fn milliseconds_are_rounded_down() {
        assert_eq!([999, 1_000, 1_999].map(|ticks| whole_millis(TickDuration(ticks))), [0, 1, 1]);
    }
}
