//! Times for people.

use jiff::Timestamp;
use tenure_core::kernel::{Anchor, State, Tick};

/// A tick as RFC 3339 in UTC, with milliseconds. It decides nothing.
pub(crate) fn time_of(state: &State, tick: Tick) -> String {
    state.clock().map_or_else(|| time_by(Anchor::default(), Tick(0)), |clock| time_by(clock.anchor, tick))
}

/// The same by an anchor that was noted before.
pub(crate) fn time_by(anchor: Anchor, tick: Tick) -> String {
    let wall = anchor.wall_of(tick);
    // 2^64 nanoseconds end in the year 2554.
    let time = Timestamp::from_nanosecond(wall.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}
