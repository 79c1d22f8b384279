//! The clocks by which tokens end, and the time for people. No lease depends on them.

use std::time::SystemTime;

use jiff::Timestamp;

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
