//! An API token, its scopes, and the resources that it is limited to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tenure_core::kernel::Principal;
use tenure_registrar::shell::boot_microseconds;

use crate::clock::wall_ms;

/// What two clocks say. Either ends a token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Unix milliseconds: what a date in a file is compared with.
    pub(crate) wall_ms: u64,
    /// Microseconds since the machine started, which nobody can set back.
    pub(crate) boot: u64,
}

impl Now {
    /// What they say at this moment.
    pub(crate) fn read() -> Self {
        Self { wall_ms: wall_ms(), boot: boot_microseconds() }
    }
}

/// A token that an admin made. Its secret is not kept, only a digest of it.
pub(crate) struct Given {
    pub(crate) id: String,
    /// Its name, which is also who speaks with it.
    pub(crate) principal: Principal,
    pub(crate) scopes: Scopes,
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

impl Given {
    pub(crate) fn is_good(&self, now: Now) -> bool {
        let is_over = self.expires_ms.is_some_and(|end| now.wall_ms >= end)
            || self.deadline.is_some_and(|end| now.boot >= end);
        !is_over && !self.is_revoked()
    }

    /// The same at this moment. It waits for nobody: it is asked for each event that somebody listens to.
    pub(crate) fn is_good_now(&self) -> bool {
        if self.expires_ms.is_some() { self.is_good(Now::read()) } else { !self.is_revoked() }
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
    pub(super) fn deadline(expires_ms: Option<u64>, now: Now) -> Option<u64> {
        let left = expires_ms?.saturating_sub(now.wall_ms).saturating_mul(1_000);
        Some(now.boot.saturating_add(left))
    }
}

tenure_core::text_enum! {
    /// One thing that a caller may do.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Scope: parse {
        /// Look at leases, queues and events.
        LeasesRead = "leases:read",
        LeasesWrite = "leases:write",
        ControlWrite = "control:write",
        IntentsWrite = "v3:write",
        /// Everything, and what nobody else may: revoke, and make tokens.
        Admin = "admin",
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Several scopes. `admin` includes every other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scopes(u8);

impl Scopes {
    pub(crate) fn contain(self, scope: Scope) -> bool {
        self.0 & (Self::bit(scope) | Self::bit(Scope::Admin)) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that were named, which may be fewer than those that are contained.
    pub(crate) fn named(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & Self::bit(*scope) != 0)
    }

    fn bit(scope: Scope) -> u8 {
        1 << scope as u8
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | Self::bit(scope)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_scope_contains_every_scope_and_no_other_does() {
        for have in Scope::ALL {
            let scopes = Scopes::from_iter([have]);
            for asked in Scope::ALL {
                assert_eq!(scopes.contain(asked), have == Scope::Admin || have == asked, "{have} {asked}");
            }
            assert_eq!(Scope::parse(have.as_str()), Some(have));
            assert_eq!(scopes.named().collect::<Vec<_>>(), [have]);
        }
        assert_eq!(Scope::parse("Admin"), None);
        assert!(!Scopes::default().contain(Scope::LeasesRead));
    }
}
