//! An API token, its scopes, and the resources that it is limited to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tenure_core::kernel::Principal;
use tenure_registrar::runtime::boot_microseconds;

use crate::clock::wall_ms;

/// What two clocks say. Either ends a token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenClockReading {
    /// Unix milliseconds: what a date in a file is compared with.
    pub(crate) wall_ms: u64,
    /// Microseconds since the machine started, which nobody can set back.
    pub(crate) boot_us: u64,
}

impl TokenClockReading {
    /// What they say at this moment.
    pub(crate) fn read() -> Self {
        Self { wall_ms: wall_ms(), boot_us: boot_microseconds() }
    }
}

/// A token that an admin made. Its secret is not kept, only a digest of it.
pub(crate) struct StoredToken {
    pub(crate) id: String,
    /// Its name, which is also who speaks with it.
    pub(crate) principal: Principal,
    pub(crate) scopes: TokenScopes,
    pub(crate) resources: Arc<[String]>,
    pub(crate) created_ms: u64,
    pub(crate) expires_ms: Option<u64>,
    pub(super) digest: blake3::Hash,
    /// The end on the clock that nobody can set back, as far as this process knows.
    pub(super) deadline: Option<u64>,
    pub(super) revoked: AtomicBool,
    /// 0 is never.
    pub(super) last_used_ms: AtomicU64,
}

impl StoredToken {
    pub(crate) fn is_valid(&self, now: TokenClockReading) -> bool {
        let is_expired = self.expires_ms.is_some_and(|end| now.wall_ms >= end)
            || self.deadline.is_some_and(|end| now.boot_us >= end);
        !is_expired && !self.is_revoked()
    }

    /// The same at this moment. It waits for nobody: it is asked for each event that somebody listens to.
    pub(crate) fn is_valid_now(&self) -> bool {
        if self.expires_ms.is_some() { self.is_valid(TokenClockReading::read()) } else { !self.is_revoked() }
    }

    /// Whether it was revoked, which may be while somebody has it in hand.
    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    /// When it was last used, since the server started.
    pub(crate) fn last_used_ms(&self) -> Option<u64> {
        Some(self.last_used_ms.load(Ordering::Relaxed)).filter(|time| *time > 0)
    }

    /// When it ends on the one clock, from both of them at one moment.
    pub(super) fn deadline(expires_ms: Option<u64>, now: TokenClockReading) -> Option<u64> {
        let remaining = expires_ms?.saturating_sub(now.wall_ms).saturating_mul(1_000);
        Some(now.boot_us.saturating_add(remaining))
    }
}

tenure_core::text_enum! {
    /// One thing that a caller may do.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum TokenScope: parse {
        /// Look at leases, queues and events.
        LeasesRead = "leases:read",
        LeasesWrite = "leases:write",
        ControlWrite = "control:write",
        IntentsWrite = "v3:write",
        /// Everything, and what nobody else may: revoke, and make tokens.
        Admin = "admin",
    }
}

impl fmt::Display for TokenScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Several scopes. `admin` includes every other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TokenScopes(u8);

impl TokenScopes {
    pub(crate) fn contains(self, scope: TokenScope) -> bool {
        self.0 & (Self::bit(scope) | Self::bit(TokenScope::Admin)) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that were named, which may be fewer than those that are contained.
    pub(crate) fn explicit_scopes(self) -> impl Iterator<Item = TokenScope> {
        TokenScope::ALL.into_iter().filter(move |scope| self.0 & Self::bit(*scope) != 0)
    }

    fn bit(scope: TokenScope) -> u8 {
        1 << scope as u8
    }
}

impl FromIterator<TokenScope> for TokenScopes {
    fn from_iter<I: IntoIterator<Item = TokenScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | Self::bit(scope)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_scope_contains_every_scope_and_no_other_does() {
        for have in TokenScope::ALL {
            let scopes = TokenScopes::from_iter([have]);
            for scope in TokenScope::ALL {
                assert_eq!(
                    scopes.contains(scope),
                    have == TokenScope::Admin || have == scope,
                    "{have} {scope}"
                );
            }
            assert_eq!(TokenScope::parse(have.as_str()), Some(have));
            assert_eq!(scopes.explicit_scopes().collect::<Vec<_>>(), [have]);
        }
        assert_eq!(TokenScope::parse("Admin"), None);
        assert!(!TokenScopes::default().contains(TokenScope::LeasesRead));
    }
}
