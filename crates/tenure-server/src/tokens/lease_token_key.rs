//! The key that lease tokens are made with, and digests of tokens.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use tenure_core::kernel::Nonce;
use zeroize::Zeroizing;

use crate::secret_file;
use crate::secret_file::SecretFileError;

const KEY_FILE: &str = "token.key";

/// What the tokens of leases are made with. It has no `Debug`: whoever has it can renew and release everything.
pub(crate) struct LeaseTokenKey(Zeroizing<[u8; 32]>);

impl LeaseTokenKey {
    /// The key in a data directory, which is made at the first start.
    pub(crate) fn open(directory: &Path) -> Result<Self, SecretFileError> {
        let path = directory.join(KEY_FILE);
        if let Some(text) = secret_file::read(&path)? {
            let mut key = Zeroizing::new([0; 32]);
            return match hex::decode_to_slice(text.as_bytes(), key.as_mut()) {
                Ok(()) => Ok(Self(key)),
                Err(_) => Err(SecretFileError::Malformed { path, what: "64 hexadecimal digits" }),
            };
        }
        let key = secret_file::random()?;
        secret_file::write(&path, &Zeroizing::new(hex::encode(*key)))?;
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

/// What is kept of a secret.
pub(super) fn digest(secret: &str) -> blake3::Hash {
    blake3::hash(secret.as_bytes())
}

/// Whether two digests are the same. How long that takes says nothing about them.
pub(super) fn is_same(one: &blake3::Hash, other: &blake3::Hash) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_token_is_valid_only_for_its_lease_and_key() {
        let key = LeaseTokenKey(Zeroizing::new([7; 32]));
        let token = key.lease_token("4f1d09aa-17", Nonce([1; 16]));
        assert_eq!(token.len(), 43, "256 bits");
        assert!(key.is_token_of(&token, "4f1d09aa-17", Nonce([1; 16])));
        assert!(!key.is_token_of(&token, "4f1d09aa-18", Nonce([1; 16])));
        assert!(!key.is_token_of(&token, "4f1d09aa-17", Nonce([2; 16])));
        assert!(!key.is_token_of("", "4f1d09aa-17", Nonce([1; 16])));
        let other = LeaseTokenKey(Zeroizing::new([8; 32]));
        assert!(!other.is_token_of(&token, "4f1d09aa-17", Nonce([1; 16])));
    }

    /// A token that was given out must be good after every update: this one was computed with Python's hmac.
    #[test]
    fn lease_tokens_do_not_change_between_versions() {
        let key = LeaseTokenKey(Zeroizing::new([7; 32]));
        let token = key.lease_token("4f1d09aa-17", Nonce([1; 16]));
        assert_eq!(*token, "zaYW_FfYVUQ-i1vuoiIEJMtdkz3TsT4WpruiDcvCPXY");
    }

    #[test]
    fn the_key_is_made_once_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let key = LeaseTokenKey::open(folder.path()).unwrap();
        assert!(*key.0 == *LeaseTokenKey::open(folder.path()).unwrap().0);
        assert!(*key.0 != [0; 32]);
        std::fs::write(folder.path().join(KEY_FILE), "not a key").unwrap();
        let refused = LeaseTokenKey::open(folder.path()).map(|_| ()).unwrap_err();
        assert!(matches!(refused, SecretFileError::Malformed { .. }), "{refused}");
    }
}
