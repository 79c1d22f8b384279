//! A reading of the registrar's own clock.

/// A reading of a monotonic clock, with the rate at which that clock counts.
///
/// Two readings can only be compared when their rates are the same: 5 is earlier than 6 on one clock
/// and says nothing about another. Whoever compares treats another rate like no reading at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HtfTick {
    value: u64,
    tick_rate_hz: u64,
}

impl HtfTick {
    /// The reading `value` of a clock that counts `tick_rate_hz` times a second.
    pub const fn new(value: u64, tick_rate_hz: u64) -> Self {
        Self { value, tick_rate_hz }
    }

    /// How often the clock has counted.
    pub const fn value(self) -> u64 {
        self.value
    }

    /// How often it counts in a second.
    pub const fn tick_rate_hz(self) -> u64 {
        self.tick_rate_hz
    }

    /// Whether this reading and `other` may be compared.
    pub(super) const fn same_clock(self, other: Self) -> bool {
        self.tick_rate_hz == other.tick_rate_hz
    }

    /// How many nanoseconds before `later` this reading was taken, on the same clock.
    ///
    /// Nothing when `later` is in fact earlier, or the clock stands still. Longer than 2^64
    /// nanoseconds counts as 2^64 - 1: whoever asks caps it with an expiry.
    pub(super) fn nanoseconds_until(self, later: u64) -> Option<u64> {
        let ticks = u128::from(later.checked_sub(self.value)?);
        // Below 2^64 * 2^30, so the product fits.
        let nanoseconds = (ticks * 1_000_000_000).checked_div(u128::from(self.tick_rate_hz))?;
        Some(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds_whatever_the_rate() {
        assert_eq!(HtfTick::new(10, 1_000_000).nanoseconds_until(13), Some(3_000));
        assert_eq!(HtfTick::new(10, 1).nanoseconds_until(10), Some(0));
        assert_eq!(HtfTick::new(0, 3).nanoseconds_until(1), Some(333_333_333));
        assert_eq!(HtfTick::new(0, u64::MAX).nanoseconds_until(u64::MAX), Some(1_000_000_000));
    }

    #[test]
    fn tick_conversion_handles_extreme_values() {
        assert_eq!(HtfTick::new(11, 1_000_000).nanoseconds_until(10), None);
        assert_eq!(HtfTick::new(0, 0).nanoseconds_until(10), None);
        assert_eq!(HtfTick::new(0, 1).nanoseconds_until(u64::MAX), Some(u64::MAX));
    }
}
