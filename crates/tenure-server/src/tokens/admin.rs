//! The token that may do everything.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;
use zeroize::Zeroizing;

use super::lease_token_key::{digest, is_same};
use crate::secret_file::{self, SecretFileError};

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
}
