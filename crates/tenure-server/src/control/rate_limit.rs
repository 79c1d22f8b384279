//! Slows down who sends more than is good for others.

use std::time::Duration;

use tokio::time::Instant;

/// Lets so many through a second, and as many at once after a rest.
pub(super) struct RateLimiter {
    per_second: u32,
    /// When all that was let through would have been due.
    due: Instant,
}

impl RateLimiter {
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        Self { per_second, due: now }
    }

    /// Counts one, and says how long to wait before the next is heard. A second's worth may come at once.
    pub(super) fn record(&mut self, now: Instant) -> Option<Duration> {
        self.due = self.due.max(now) + Duration::from_secs(1) / self.per_second;
        let ahead = self.due - now;
        ahead.checked_sub(Duration::from_secs(1)).filter(|wait| !wait.is_zero())
    }

    /// Counts one if it may go now.
    pub(super) fn try_acquire(&mut self, now: Instant) -> bool {
        let due = self.due.max(now) + Duration::from_secs(1) / self.per_second;
        let is_in_time = due - now <= Duration::from_secs(1);
        if is_in_time {
            self.due = due;
        }
        is_in_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_one_second_is_admitted_at_once() {
        let now = Instant::now();
        let mut limiter = RateLimiter::new(10, now);
        assert!((0..10).all(|_| limiter.record(now).is_none()));
        assert_eq!(limiter.record(now), Some(Duration::from_millis(100)));
        let later = now + Duration::from_secs(2);
        assert!((0..10).all(|_| limiter.try_acquire(later)) && !limiter.try_acquire(later));
    }
}
