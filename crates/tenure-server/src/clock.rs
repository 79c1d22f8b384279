//! The clocks by which tokens end, and the time for people. No lease depends on them.

use std::time::SystemTime;

use jiff::Timestamp;
use tenure_core::kernel::{ClockAnchor, KernelState, Tick};

/// Unix milliseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the end of an API token is a date, which must mean the same after a restart; no lease depends on it"
)]
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Unix milliseconds as RFC 3339 in UTC.
pub(crate) fn format_unix_ms(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|time| Timestamp::from_millisecond(time).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

/// A tick as RFC 3339 in UTC, with milliseconds. It decides nothing.
pub(crate) fn tick_to_rfc3339(state: &KernelState, tick: Tick) -> String {
    state.clock().map_or_else(
        || format_tick_with_anchor(ClockAnchor::default(), Tick(0)),
        |clock| format_tick_with_anchor(clock.anchor, tick),
    )
}

/// The same by an anchor that was noted before.
pub(crate) fn format_tick_with_anchor(anchor: ClockAnchor, tick: Tick) -> String {
    let wall = anchor.wall_time_of(tick);
    // 2^64 nanoseconds end in the year 2554.
    let time = Timestamp::from_nanosecond(wall.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}
