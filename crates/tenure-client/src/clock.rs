//! The clock, and how long a client believes that it holds a lease.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tenure_core::kernel::TickDuration;

/// What CLOCK_BOOTTIME says, in microseconds. Every local deadline counts by it: it goes on while the machine sleeps,
/// as the server's time does.
pub fn boot_microseconds() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(nanoseconds / 1_000)
}

/// The longest sleep at once. tokio's timers stand still while the machine sleeps, so that one set for an hour would
/// ring an hour of waking time later. Nobody looks later than this after the machine woke up, and one look a second
/// costs nothing. Whoever may not be late at all asks [`crate::Guard::check`], which needs no timer.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// Waits until the local clock says `at`.
pub(crate) async fn sleep_until(at: u64) {
    loop {
        let remaining = at.saturating_sub(boot_microseconds());
        if remaining == 0 {
            return;
        }
        // Rounded up: a timer that rings a moment early would be set again for nothing.
        tokio::time::sleep(Duration::from_micros(remaining).min(MAX_SLEEP)).await;
    }
}

/// Waits until then, or for ever.
pub(crate) async fn sleep_until_or_forever(at: Option<u64>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Time for whatever a holder still does after it last looked at its clock.
pub const SAFETY_MARGIN: TickDuration = TickDuration::from_millis(50);

/// The instant, on the holder's own clock in microseconds, from which on it must not believe any more.
///
/// `sent` is when the request left, and `valid_for` what the lease still had when the request *arrived*,
/// which was later: so the holder's time is never more than the registrar's. Half a percent is taken off
/// for two clocks that do not run alike; clocks that differ by more are caught by fences only.
///
/// ```
/// use tenure_client::local_deadline;
/// use tenure_core::kernel::TickDuration;
/// assert_eq!(local_deadline(1_000_000, TickDuration::from_secs(10)), 1_000_000 + 9_950_000 - 50_000);
/// assert_eq!(local_deadline(7, TickDuration::from_millis(50)), 7, "too short to be believed at all");
/// ```
pub fn local_deadline(sent: u64, valid_for: TickDuration) -> u64 {
    let drift = valid_for.0.div_ceil(200);
    let validity = valid_for.0.saturating_sub(drift).saturating_sub(SAFETY_MARGIN.0);
    sent.saturating_add(validity)
}
