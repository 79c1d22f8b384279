//! What a caller may do.

use std::fmt;

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
    fn admin_includes_every_scope_and_no_other_includes_any() {
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
