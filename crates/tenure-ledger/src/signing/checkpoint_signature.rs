//! The signature of a checkpoint, which stands for everything that was pruned behind it.
//!
//! ```text
//! signed = "tenure.checkpoint.v1" | ledger id, 16 | key id, 8 | digest, 32
//! seal   = key id, 8 | signature, 64
//! ```

use super::key::{KeyId, LedgerSigningKey, SignatureBytes};
use super::keyring::Keyring;
use crate::ledger::LedgerId;

/// Who vouches for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckpointSignature {
    key_id: KeyId,
    signature: SignatureBytes,
}

impl CheckpointSignature {
    pub(crate) fn sign(key: &LedgerSigningKey, ledger: LedgerId, digest: &[u8]) -> CheckpointSignature {
        let key_id = key.id();
        CheckpointSignature { key_id, signature: key.sign(&message_to_sign(ledger, key_id, digest)) }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.key_id.0.as_slice(), &self.signature].concat()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<CheckpointSignature> {
        let (key_id, signature) = bytes.split_first_chunk::<8>()?;
        Some(CheckpointSignature { key_id: KeyId(*key_id), signature: signature.try_into().ok()? })
    }

    /// Whether a key that might, at event `seq`, signed this digest.
    pub(crate) fn is_valid(&self, keyring: &Keyring, seq: u64, digest: &[u8]) -> bool {
        // A key signs what comes after the event that added it; a checkpoint holds that event itself.
        let key = keyring.key_valid_at(self.key_id, seq.saturating_add(1));
        key.is_ok_and(|key| {
            key.is_valid_signature(&message_to_sign(keyring.ledger(), self.key_id, digest), &self.signature)
        })
    }
}

fn message_to_sign(ledger: LedgerId, key_id: KeyId, digest: &[u8]) -> Vec<u8> {
    let parts: [&[u8]; 4] = [b"tenure.checkpoint.v1", &ledger.0, &key_id.0, digest];
    parts.concat()
}
