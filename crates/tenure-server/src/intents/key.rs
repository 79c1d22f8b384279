//! Idempotency keys of intents: HMAC-SHA256 of the request, so that without the secret a key says nothing about its
//! intent.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use tenure_core::kernel::{Intent, IntentKey};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::secret_file::{self, SecretFileError};

const CONTEXT: &str = "v3_intent";
/// The one type of intents that have keys.
const TYPE: &str = "stream.start";
/// Between a profile and the digest of its particulars. No profile contains it.
const PARTS: char = '\u{1f}';

/// What keys are made with. It has no `Debug`, and is wiped when it is dropped.
pub struct IntentSecret(Zeroizing<Vec<u8>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the secret is empty; set it to 32 random bytes as text, or leave the variable out")]
pub struct EmptySecret;

impl IntentSecret {
    pub fn new(secret: impl AsRef<[u8]>) -> Result<Self, EmptySecret> {
        let secret = secret.as_ref();
        if secret.is_empty() { Err(EmptySecret) } else { Ok(Self(Zeroizing::new(secret.to_vec()))) }
    }

    fn random() -> Result<Self, SecretFileError> {
        Ok(Self(Zeroizing::new(secret_file::random::<32>()?.to_vec())))
    }

    fn key_of(&self, message: &str) -> IntentKey {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(message.as_bytes());
        IntentKey(mac.finalize().into_bytes().into())
    }
}

/// The secret that keys are made with, and the one before it: what was accepted under that is still found.
pub struct IntentSecrets {
    /// The one that new keys are made with.
    pub current: IntentSecret,
    /// The one that they were made with before.
    pub previous: Option<IntentSecret>,
}

impl IntentSecrets {
    /// A secret of this process alone: after a restart nothing that was accepted before is found again.
    pub(crate) fn random() -> Result<Self, SecretFileError> {
        Ok(Self { current: IntentSecret::random()?, previous: None })
    }
}

pub(super) struct IntentKeyDeriver(IntentSecrets);

impl IntentKeyDeriver {
    pub(super) fn new(secrets: IntentSecrets) -> Self {
        Self(secrets)
    }

    /// The key of an intent, and the one that it had before the secret was another.
    pub(super) fn of(&self, intent: &Intent) -> (IntentKey, Option<IntentKey>) {
        let (IntentSecrets { current, previous }, message) = (&self.0, message(intent));
        (current.key_of(&message), previous.as_ref().map(|secret| secret.key_of(&message)))
    }
}

/// What a key is made of. Its parts contain no `|`: the kernel refuses such an intent.
fn message(intent: &Intent) -> String {
    let target = &intent.target;
    let mut profile = intent.profile.to_string();
    if !intent.params.is_empty() {
        profile.push(PARTS);
        profile.push_str(&hex::encode(Sha256::digest(intent.params.as_bytes())));
    }
    format!("{CONTEXT}|{TYPE}|{}|{profile}|{}", target.id(), target.start_second())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::kernel::IntentTarget;

    use super::*;

    fn intent(target: IntentTarget, params: &str) -> Intent {
        Intent { target, profile: "hd".into(), params: params.into(), correlation: Arc::from("") }
    }

    fn live(params: &str) -> Intent {
        intent(IntentTarget::Service("1:0:19:283D:3FB:1:C00000:0:0:0:".into()), params)
    }

    fn recording(start_ms: u64) -> Intent {
        intent(IntentTarget::Recording { id: "rec-7".into(), start_ms }, "")
    }

    fn keys(current: &str, previous: Option<&str>) -> IntentKeyDeriver {
        let secret = |text: &str| IntentSecret::new(text).unwrap();
        IntentKeyDeriver::new(IntentSecrets { current: secret(current), previous: previous.map(secret) })
    }

    // S1-22, S1-26, S1-27, S1-28, S1-29
    /// These were computed with Python's hmac.
    #[test]
    fn keys_equal_those_of_another_hmac_implementation() {
        let keys = keys("a secret of no importance", None);
        for (intent, expected) in [
            (live(""), "1c5ba4d4cfc8c52c6287ac814baeeffbfb46526265c7281dd8c561c8f0588de8"),
            (live(r#"{"audio":"de"}"#), "6fc2d1a7ee5a20ee7d5d8aee1d4bbc2ffe97e885a6eff3160f582a865fc32e08"),
            (recording(10_500), "ac0ac20eba7ee559f35914e47997a2b4990b1a46a43ae198bdefb73e343247a2"),
        ] {
            assert_eq!(hex::encode(keys.of(&intent).0.0), expected, "{intent:?}");
        }
    }

    // S1-30
    #[test]
    fn seeks_within_one_second_have_the_same_key() {
        let keys = keys("s", None);
        let key = |start_ms| keys.of(&recording(start_ms)).0;
        assert_eq!(key(10_000), key(10_500));
        assert_eq!(key(10_000), key(10_999));
        assert_ne!(key(10_000), key(11_000));
        assert_ne!(key(10_000), key(60_000));
    }

    // S1-24, S1-25
    #[test]
    fn a_key_of_the_previous_secret_is_returned_as_previous() {
        let (old, new) = (keys("old", None), keys("new", Some("old")));
        let (key, previous) = new.of(&live(""));
        assert_eq!(previous, Some(old.of(&live("")).0));
        assert_eq!(key, keys("new", None).of(&live("")).0);
        assert_ne!(Some(key), previous);
    }

    #[test]
    fn an_empty_secret_is_rejected() {
        assert_eq!(IntentSecret::new("").map(|_| ()), Err(EmptySecret));
    }
}
