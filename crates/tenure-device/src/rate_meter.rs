//! How many of something there were in the last second.

use tenure_core::kernel::Tick;

/// How long a slot is, in ticks: a tenth of a second.
const SLOT: u64 = 100_000;
/// A second, and the slot that is not over yet.
const SLOTS: usize = 11;

/// Counts what happens, and forgets what is more than a second ago.
#[derive(Debug, Clone, Default)]
pub struct RateMeter {
    slots: [(u64, u32); SLOTS],
}

impl RateMeter {
    pub fn count(&mut self, now: Tick) {
        let number = now.0 / SLOT;
        let slot = &mut self.slots[usize::try_from(number % SLOTS as u64).unwrap_or(0)];
        if slot.0 != number {
            *slot = (number, 0);
        }
        slot.1 = slot.1.saturating_add(1);
    }

    /// How many there were in the last ten slots that are over.
    pub fn per_second(&self, now: Tick) -> u32 {
        let number = now.0 / SLOT;
        let is_recent = |slot: u64| slot < number && number - slot < SLOTS as u64;
        self.slots.iter().filter(|(slot, _)| is_recent(*slot)).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_measured_and_drops_to_zero_after_it_stops() {
        let mut rate = RateMeter::default();
        for frame in 0..2_400_u64 {
            rate.count(Tick(7_000_000 + frame * 1_000_000 / 240));
        }
        assert_eq!(rate.per_second(Tick(16_950_000)), 240, "a slot that is not over does not count");
        assert_eq!(rate.per_second(Tick(17_000_000)), 240);
        assert_eq!(rate.per_second(Tick(17_500_000)), 120);
        assert_eq!(rate.per_second(Tick(18_100_000)), 0);
        assert_eq!(RateMeter::default().per_second(Tick(0)), 0);
    }
}
