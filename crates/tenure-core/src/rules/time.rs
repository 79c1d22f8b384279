//! When a lease is over. Every lease is half-open: it lives from its issue up to, and without, its expiry.
//!
//! The functions take bare numbers because ticks and Unix nanoseconds obey the same rule.

/// Whether a lease that ends at `expires_at` is over at `now`. At equality it is dead.
///
/// ```
/// use tenure_core::rules::time::is_expired;
/// assert!(!is_expired(9, 10));
/// assert!(is_expired(10, 10));
/// ```
pub const fn is_expired(now: u64, expires_at: u64) -> bool {
    now >= expires_at
}

/// How long a lease that ends at `expires_at` still lives at `now`; 0 once it is over.
pub const fn remaining(now: u64, expires_at: u64) -> u64 {
    expires_at.saturating_sub(now)
}

/// Whether a lease from `issued_at` to `expires_at` would live at all.
pub const fn has_duration(issued_at: u64, expires_at: u64) -> bool {
    expires_at > issued_at
}

/// Whether moving the end from `current` to `proposed` gives the holder more time.
pub const fn extends(current: u64, proposed: u64) -> bool {
    proposed > current
}
