//! Where ticks come from: a clock that never goes back, continued over restarts.

use tenure_core::kernel::{ClockReading, KernelState, Tick};

/// Turns readings of one clock into ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickClock {
    /// The reading at which this stamper began, and the tick that it stands for.
    origin: (u64, Tick),
    last: Tick,
}

impl TickClock {
    /// Goes on where the ledger behind `state` ended.
    ///
    /// On the clock that wrote it, time went on while nobody looked. On another clock (a reboot, another
    /// machine) nothing is known of that time, so nothing is added: late is safe, early is a double grant.
    pub fn resume(state: &KernelState, reading: &ClockReading) -> Self {
        let went_on = state.clock().filter(|clock| clock.reading.clock == reading.clock).and_then(|clock| {
            let elapsed = reading.microseconds.checked_sub(clock.reading.microseconds)?;
            clock.tick.0.checked_add(elapsed)
        });
        let tick = went_on.map_or(state.now(), |tick| Tick(tick).max(state.now()));
        Self { origin: (reading.microseconds, tick), last: tick }
    }

    /// The tick of a reading of the same clock. Never goes back, whatever the reading says.
    pub fn stamp(&mut self, microseconds: u64) -> Tick {
        let elapsed = microseconds.saturating_sub(self.origin.0);
        self.last = self.last.max(Tick(self.origin.1.0.saturating_add(elapsed)));
        self.last
    }

    /// The newest tick that was stamped.
    pub fn last(&self) -> Tick {
        self.last
    }

    /// What the clock will say at `tick`, which may be in the past.
    pub fn reading_at(&self, tick: Tick) -> u64 {
        self.origin.0.saturating_add(tick.since(self.origin.1).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::kernel::Event;

    fn reading(clock: &str, microseconds: u64) -> ClockReading {
        ClockReading { clock: clock.into(), microseconds }
    }

    fn state_at(tick: u64, reading: ClockReading) -> KernelState {
        let mut state = KernelState::default();
        let event = Event::Resumed { at: Tick(tick), reading, wall_anchor: 0, wall_clock: 0 };
        state.apply(&event).expect("a first start");
        state
    }

    #[test]
    fn resuming_on_the_same_clock_adds_the_elapsed_time() {
        let state = state_at(1_000, reading("boot-a", 500));
        let mut stamper = TickClock::resume(&state, &reading("boot-a", 800));
        assert_eq!(stamper.stamp(800), Tick(1_300));
        assert_eq!(stamper.stamp(900), Tick(1_400));
    }

    #[test]
    fn resuming_on_another_clock_adds_no_time() {
        let state = state_at(1_000, reading("boot-a", 500));
        for microseconds in [0, 500, 800, u64::MAX] {
            let mut stamper = TickClock::resume(&state, &reading("boot-b", microseconds));
            assert_eq!(stamper.stamp(microseconds), Tick(1_000));
        }
    }

    #[test]
    fn resuming_on_a_clock_that_went_back_adds_no_time() {
        let state = state_at(1_000, reading("boot-a", 500));
        let mut stamper = TickClock::resume(&state, &reading("boot-a", 400));
        assert_eq!(stamper.stamp(410), Tick(1_010));
    }

    #[test]
    fn ticks_are_monotonic() {
        let state = state_at(1_000, reading("boot-a", 500));
        let mut stamper = TickClock::resume(&state, &reading("boot-a", 500));
        assert_eq!(stamper.stamp(700), Tick(1_200));
        assert_eq!(stamper.stamp(600), Tick(1_200));
        assert_eq!(stamper.stamp(u64::MAX), Tick(u64::MAX), "the end of time is not passed");
    }

    #[test]
    fn reading_at_inverts_stamp() {
        let state = state_at(1_000, reading("boot-a", 500));
        let stamper = TickClock::resume(&state, &reading("boot-a", 500));
        assert_eq!(stamper.reading_at(Tick(1_250)), 750);
    }
}
