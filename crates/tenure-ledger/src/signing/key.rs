//! The key of a node: its secret half signs, its public half is known by a short id.

use std::fmt;

use aws_lc_rs::signature::Ed25519KeyPair;
use ed25519_dalek::{Signature, SigningKey, VerifyingKey};
use thiserror::Error;
use zeroize::Zeroizing;

/// An Ed25519 signature.
pub type SignatureBytes = [u8; 64];

const ID_PREFIX: &[u8; 13] = b"tenure.key.v1";

/// Which key: the first 8 bytes of `BLAKE3("tenure.key.v1" | public key)`, shown in hex.
///
/// It finds a key among those that are trusted already; it is too short to be trust itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 8]);

/// The half of a key that everyone may know: it tells what the other half signed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(VerifyingKey);

/// Bytes or text that are no public key, or a system without randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It was copied wrongly, or is something else.
    #[error("a public key is 64 hexadecimal digits")]
    NotHex,
    /// No key pair has such a public key, or one under which anything would seem signed.
    #[error("these bytes are no Ed25519 public key that can be trusted")]
    NotAKey,
    /// The operating system gave no randomness to make a key from.
    #[error("the operating system gives no randomness")]
    NoRandomness(#[source] getrandom::Error),
}

impl PublicKey {
    /// Checks bytes as they came in: one form for each key, and none of the few weak keys.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<PublicKey, KeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::NotAKey)?;
        let is_canonical = key.to_edwards().compress().as_bytes() == bytes;
        if is_canonical && !key.is_weak() { Ok(PublicKey(key)) } else { Err(KeyError::NotAKey) }
    }

    /// Reads what [`fmt::Display`] writes, in either case.
    pub fn parse(text: &str) -> Result<PublicKey, KeyError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| KeyError::NotHex)?;
        PublicKey::from_bytes(&bytes)
    }

    /// The key as 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Its id.
    pub fn id(&self) -> KeyId {
        let mut bytes = [0; ID_PREFIX.len() + 32];
        bytes[..ID_PREFIX.len()].copy_from_slice(ID_PREFIX);
        bytes[ID_PREFIX.len()..].copy_from_slice(self.as_bytes());
        let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(&bytes).as_bytes();
        KeyId([a, b, c, d, e, f, g, h])
    }

    /// Whether the other half of this key signed `message`. A signature has one form only: see `verify_strict`.
    pub(super) fn is_valid_signature(&self, message: &[u8], signature: &SignatureBytes) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

/// A node's key pair. The secret half never leaves it but into its file, and is wiped when it is dropped.
pub struct LedgerSigningKey {
    // In one place on the heap: a key that is moved about would leave copies behind that nobody wipes.
    secret: Box<SigningKey>,
    /// The same once more: it signs in half the time, and each durable write is signed before anybody is answered.
    signer: Ed25519KeyPair,
    public: PublicKey,
}

impl LedgerSigningKey {
    /// A new key from the operating system's randomness.
    pub fn generate() -> Result<LedgerSigningKey, KeyError> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(secret.as_mut()).map_err(KeyError::NoRandomness)?;
        Ok(LedgerSigningKey::from_secret(&secret))
    }

    /// The key with this secret half. For simulations and tests, which must be repeatable; nobody else
    /// should know 32 such bytes.
    pub fn from_secret(secret: &[u8; 32]) -> LedgerSigningKey {
        let signer = Ed25519KeyPair::from_seed_unchecked(secret).expect("any 32 bytes are a secret key");
        let secret = Box::new(SigningKey::from_bytes(secret));
        let public = PublicKey(secret.verifying_key());
        LedgerSigningKey { secret, signer, public }
    }

    /// The half that others verify with.
    pub fn public_key(&self) -> PublicKey {
        self.public
    }

    /// Its id.
    pub fn id(&self) -> KeyId {
        self.public.id()
    }

    pub(super) fn sign(&self, message: &[u8]) -> SignatureBytes {
        let signature = self.signer.sign(message);
        signature.as_ref().try_into().expect("a signature has 64 bytes")
    }

    pub(super) fn secret(&self) -> &[u8; 32] {
        self.secret.as_bytes()
    }
}

// By hand: the secret half must not be among what a log or a panic shows.
impl fmt::Debug for LedgerSigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NodeKey({})", self.id())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({self})")
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyId({self})")
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::Signer as _;

    use super::*;

    #[test]
    fn both_ed25519_implementations_make_the_same_signature() {
        for seed in 0..=255 {
            let key = LedgerSigningKey::from_secret(&[seed; 32]);
            let message = vec![seed; usize::from(seed) * 3];
            let signature = key.sign(&message);
            assert_eq!(signature, key.secret.sign(&message).to_bytes());
            assert!(key.public_key().is_valid_signature(&message, &signature));
        }
    }
}
