//! Idempotency keys.

use thiserror::Error;

/// Makes a request one and the same however often it is sent: the server finds its first answer again.
///
/// Whoever knows the key and the request gets the lease's token, so it is shown by nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

/// What cannot be a key.
#[derive(Debug, Error)]
#[error("an idempotency key has 1 to 255 visible ASCII characters; choose another one")]
pub struct InvalidKey;

impl IdempotencyKey {
    /// A key that nobody else has.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has random bytes");
        Self(hex::encode(bytes))
    }

    /// A key of the caller's own.
    pub fn parse(text: &str) -> Result<Self, InvalidKey> {
        let is_fit = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_fit { Ok(Self(text.to_owned())) } else { Err(InvalidKey) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What spreads clients out in time.
pub(crate) fn random_u64() -> u64 {
    let mut bytes = [0; 8];
    // Without chance clients are only less spread out.
    let _ = getrandom::fill(&mut bytes);
    u64::from_le_bytes(bytes)
}
