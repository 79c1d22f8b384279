//! How often an input is listened to.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// How many lines, or movements of the knob, are taken in a second. Nobody types or turns faster.
pub(super) const MAX_PER_SECOND: u32 = 100;

/// Lets through so many and no more. What comes faster waits where it is: in the port, and at last at its sender.
pub(super) struct Throttle(Interval);

impl Throttle {
    pub(super) fn new() -> Self {
        let mut interval = interval(Duration::from_secs(1) / MAX_PER_SECOND);
        // Who was silent for long has saved up nothing.
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self(interval)
    }

    /// Waits until the next one may come.
    pub(super) async fn wait(&mut self) {
        self.0.tick().await;
    }
}
