//! Who may speak, and who holds: the admin token and the tokens of leases.

mod scope;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use tenure_core::kernel::Nonce;
use thiserror::Error;
use zeroize::Zeroizing;

pub(crate) use self::scope::{Scope, Scopes};
use crate::secret_file::{self, SecretFileError};

const KEY_FILE: &str = "token.key";
const ADMIN_FILE: &str = "admin.token";
const ADMIN_PREFIX: &str = "tenure_admin_";

/// What the tokens of leases are made with. It has no `Debug`: whoever has it can renew and release everything.
pub(crate) struct TokenKey(Zeroizing<[u8; 32]>);

impl TokenKey {
    /// The key in a data directory, which is made at the first start.
    pub(crate) fn open(directory: &Path) -> Result<Self, SecretFileError> {
        let path = directory.join(KEY_FILE);
        if let Some(text) = secret_file::read(&path)? {
            return match bytes_of_hex(&text) {
                Some(key) => Ok(Self(key)),
                None => Err(SecretFileError::Malformed { path, what: "64 hexadecimal digits" }),
            };
        }
        let key = secret_file::random()?;
        secret_file::write(&path, &hex(&key))?;
        Ok(Self(key))
    }

    /// The token of a lease. The same lease has the same token always, so that a repeated request can be answered.
    pub(crate) fn lease_token(&self, lease_id: &str, nonce: Nonce) -> Zeroizing<String> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.as_ref()).expect("HMAC takes a key of any length");
        mac.update(lease_id.as_bytes());
        mac.update(&nonce.0);
        Zeroizing::new(URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    }

    /// Whether `presented` is the token of this lease. How long that takes says nothing about the token.
    pub(crate) fn is_token_of(&self, presented: &str, lease_id: &str, nonce: Nonce) -> bool {
        is_same(&digest(presented), &digest(&self.lease_token(lease_id, nonce)))
    }
}

/// The token that may do everything. Only its digest is kept.
pub struct AdminToken(blake3::Hash);

/// A token that is too easily guessed, or that no header can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an admin token needs at least {least} characters, all of them visible ASCII", least = AdminToken::LEAST)]
pub struct WeakToken;

impl AdminToken {
    /// The fewest characters that a token may have.
    pub const LEAST: usize = 16;

    /// A token that somebody chose.
    pub fn preset(token: &str) -> Result<Self, WeakToken> {
        let is_fit = token.len() >= Self::LEAST && token.bytes().all(|byte| byte.is_ascii_graphic());
        if is_fit { Ok(Self(digest(token))) } else { Err(WeakToken) }
    }

    /// The token in a data directory, which is made at the first start.
    pub(crate) fn open(directory: &Path) -> Result<Self, SecretFileError> {
        let path = directory.join(ADMIN_FILE);
        if let Some(text) = secret_file::read(&path)? {
            let what = "a token of at least 16 visible ASCII characters";
            return Self::preset(&text).map_err(|WeakToken| SecretFileError::Malformed { path, what });
        }
        let mut token = Zeroizing::new(String::with_capacity(64));
        token.push_str(ADMIN_PREFIX);
        URL_SAFE_NO_PAD.encode_string(secret_file::random::<32>()?.as_ref(), &mut token);
        secret_file::write(&path, &token)?;
        Ok(Self(digest(&token)))
    }

    /// Whether `presented` is this token. How long that takes says nothing about the token.
    pub(crate) fn is(&self, presented: &str) -> bool {
        is_same(&digest(presented), &self.0)
    }
}

fn digest(secret: &str) -> blake3::Hash {
    blake3::hash(secret.as_bytes())
}

fn is_same(one: &blake3::Hash, other: &blake3::Hash) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

fn hex(bytes: &[u8; 32]) -> Zeroizing<String> {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("four bits are one digit");
    let mut text = Zeroizing::new(String::with_capacity(64));
    bytes.iter().for_each(|byte| text.extend([digit(byte >> 4), digit(byte & 15)]));
    text
}

fn bytes_of_hex(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let digits = text.as_bytes();
    let mut bytes = Zeroizing::new([0; 32]);
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |place: usize| char::from(pair[place]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_its_own_lease_and_key_and_no_other() {
        let key = TokenKey(Zeroizing::new([7; 32]));
        let token = key.lease_token("4f1d09aa-17", Nonce([1; 16]));
        assert_eq!(token.len(), 43, "256 bits");
        assert!(key.is_token_of(&token, "4f1d09aa-17", Nonce([1; 16])));
        assert!(!key.is_token_of(&token, "4f1d09aa-18", Nonce([1; 16])));
        assert!(!key.is_token_of(&token, "4f1d09aa-17", Nonce([2; 16])));
        assert!(!key.is_token_of("", "4f1d09aa-17", Nonce([1; 16])));
        let other = TokenKey(Zeroizing::new([8; 32]));
        assert!(!other.is_token_of(&token, "4f1d09aa-17", Nonce([1; 16])));
    }

    /// A token that was given out must be good after every update: this one was computed with Python's hmac.
    #[test]
    fn tokens_are_made_in_the_same_way_for_ever() {
        let key = TokenKey(Zeroizing::new([7; 32]));
        let token = key.lease_token("4f1d09aa-17", Nonce([1; 16]));
        assert_eq!(*token, "zaYW_FfYVUQ-i1vuoiIEJMtdkz3TsT4WpruiDcvCPXY");
    }

    #[test]
    fn the_key_is_made_once_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let key = TokenKey::open(folder.path()).unwrap();
        assert!(*key.0 == *TokenKey::open(folder.path()).unwrap().0);
        assert!(*key.0 != [0; 32]);
        std::fs::write(folder.path().join(KEY_FILE), "not a key").unwrap();
        let refused = TokenKey::open(folder.path()).map(|_| ()).unwrap_err();
        assert!(matches!(refused, SecretFileError::Malformed { .. }), "{refused}");
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        AdminToken::open(folder.path()).unwrap();
        let path = folder.path().join(ADMIN_FILE);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = AdminToken::open(folder.path()).map(|_| ()).unwrap_err();
        assert!(matches!(refused, SecretFileError::OpenToOthers { mode: 0o640, .. }), "{refused}");
    }

    #[test]
    fn a_preset_token_must_be_long_enough_and_fit_into_a_header() {
        assert!(AdminToken::preset("0123456789abcde").is_err());
        assert!(AdminToken::preset("0123456789 abcdef").is_err());
        assert!(AdminToken::preset("0123456789äbcdef").is_err());
        let token = AdminToken::preset("0123456789abcdef").unwrap();
        assert!(token.is("0123456789abcdef") && !token.is("0123456789abcdeF"));
    }
}
