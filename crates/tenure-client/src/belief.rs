//! How long a holder may believe that it holds.

use tenure_core::kernel::Span;

/// Time for whatever a holder still does after it last looked at its clock.
pub const ALLOWANCE: Span = Span::from_millis(50);

/// The instant, on the holder's own clock in microseconds, from which on it must not believe any more.
///
/// `sent` is when the request left, and `valid_for` what the lease still had when the request *arrived*,
/// which was later: so the holder's time is never more than the registrar's. Half a percent is taken off
/// for two clocks that do not run alike; clocks that differ by more are caught by fences only.
///
/// ```
/// use tenure_client::believed_until;
/// use tenure_core::kernel::Span;
/// assert_eq!(believed_until(1_000_000, Span::from_secs(10)), 1_000_000 + 9_950_000 - 50_000);
/// assert_eq!(believed_until(7, Span::from_millis(50)), 7, "too short to be believed at all");
/// ```
pub fn believed_until(sent: u64, valid_for: Span) -> u64 {
    let drift = valid_for.0.div_ceil(200);
    let believed = valid_for.0.saturating_sub(drift).saturating_sub(ALLOWANCE.0);
    sent.saturating_add(believed)
}
