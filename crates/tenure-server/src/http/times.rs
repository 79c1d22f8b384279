//! Times for people.

use jiff::Timestamp;
use tenure_core::kernel::{State, Tick};

/// A tick as RFC 3339 in UTC, with milliseconds. It decides nothing.
pub(super) fn time_of(state: &State, tick: Tick) -> String {
    let wall = state.clock().map_or(0, |clock| clock.anchor.wall_of(tick));
    // 2^64 nanoseconds end in the year 2554.
    let time = Timestamp::from_nanosecond(wall.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}
