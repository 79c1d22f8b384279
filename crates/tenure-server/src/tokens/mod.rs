//! Tokens: the admin token, API tokens, and the tokens of leases.
//!
//! Nothing here that is a secret has a `Debug`, and only digests of presented tokens are kept.

mod lease_token_key;
mod routes;
mod store;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lease_token_key::{digest, is_same};
use tenure_core::kernel::Principal;
use tenure_registrar::runtime::boot_microseconds;
use thiserror::Error;
use zeroize::Zeroizing;

pub(crate) use self::lease_token_key::LeaseTokenKey;
pub(crate) use self::routes::{finish_revoking, routes};
pub use self::store::TokenFileError;
pub(crate) use self::store::{CreateError, NewToken, TokenStore};
use crate::app::wall_ms;
use crate::secret_file;
use crate::secret_file::SecretFileError;

const ADMIN_FILE: &str = "admin.token";
const ADMIN_PREFIX: &str = "tenure_admin_";

/// The token that may do everything. Only its digest is kept.
pub struct AdminToken(blake3::Hash);

/// A token that is too easily guessed, or that no header can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an admin token needs at least {least} characters, all of them visible ASCII", least = AdminToken::MIN_LENGTH)]
pub struct InvalidAdminToken;

impl AdminToken {
    /// The fewest characters that a token may have.
    pub const MIN_LENGTH: usize = 16;

    pub fn from_configuration(token: &str) -> Result<Self, InvalidAdminToken> {
        let is_fit = token.len() >= Self::MIN_LENGTH && token.bytes().all(|byte| byte.is_ascii_graphic());
        if is_fit { Ok(Self(digest(token))) } else { Err(InvalidAdminToken) }
    }

    /// The token in a data directory, which is made at the first start.
    pub(crate) fn open(directory: &Path) -> Result<Self, SecretFileError> {
        let path = directory.join(ADMIN_FILE);
        if let Some(text) = secret_file::read(&path)? {
            let what = "a token of at least 16 visible ASCII characters";
            return Self::from_configuration(&text)
                .map_err(|InvalidAdminToken| SecretFileError::Malformed { path, what });
        }
        let mut token = Zeroizing::new(String::with_capacity(64));
        token.push_str(ADMIN_PREFIX);
        URL_SAFE_NO_PAD.encode_string(secret_file::random::<32>()?.as_ref(), &mut token);
        secret_file::write(&path, &token)?;
        Ok(Self(digest(&token)))
    }

    /// Whether `presented` is this token. How long that takes says nothing about the token.
    pub(crate) fn matches(&self, presented: &str) -> bool {
        is_same(&digest(presented), &self.0)
    }
}

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
    digest: blake3::Hash,
    /// The end on the clock that nobody can set back, as far as this process knows.
    deadline: Option<u64>,
    revoked: AtomicBool,
    /// 0 is never.
    last_used_ms: AtomicU64,
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
    fn deadline(expires_ms: Option<u64>, now: TokenClockReading) -> Option<u64> {
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
    fn an_admin_token_file_with_insecure_permissions_is_rejected() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        AdminToken::open(folder.path()).unwrap();
        let path = folder.path().join(ADMIN_FILE);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = AdminToken::open(folder.path()).map(|_| ()).unwrap_err();
        assert!(matches!(refused, SecretFileError::InsecurePermissions { mode: 0o640, .. }), "{refused}");
    }

    #[test]
    fn a_preset_token_must_be_long_enough_and_fit_into_a_header() {
        assert!(AdminToken::from_configuration("0123456789abcde").is_err());
        assert!(AdminToken::from_configuration("0123456789 abcdef").is_err());
        assert!(AdminToken::from_configuration("0123456789äbcdef").is_err());
        let token = AdminToken::from_configuration("0123456789abcdef").unwrap();
        assert!(token.matches("0123456789abcdef") && !token.matches("0123456789abcdeF"));
    }

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
