//! The signature of a batch, over all leases that it issues or renews.
//!
//! ```text
//! signed = "tenure.batch.v1" | ledger id, 16 | key id, 8 | first seq, 8 | count, 2 | root, 32
//! seal   = 1 | key id, 8 | first seq, 8 | count, 2 | root, 32 | signature, 64
//! ```

use thiserror::Error;

use super::key::{KeyId, LedgerSigningKey, SignatureBytes};
use super::keyring::{Keyring, KeyringError};
use super::leaf::Leaf;
use super::lease_signature::LeaseSignature;
use super::merkle::{LeafPosition, MAX_LEAVES, MerkleError, MerkleTree, Node};
use super::{ByteReader, DecodeError};
use crate::ledger::LedgerId;

const VERSION: u8 = 1;

/// What is stored beside a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSignature {
    key_id: KeyId,
    first_seq: u64,
    count: u16,
    root: Node,
    signature: SignatureBytes,
}

/// A seal with the tree under it, from which the signature of each lease is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedBatch {
    signature: BatchSignature,
    tree: MerkleTree,
}

/// Why a signature proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// Its bytes are not in the right form.
    #[error("the signature cannot be read: {0}")]
    Decode(#[from] DecodeError),
    /// The key that it names does not count.
    #[error(transparent)]
    Key(#[from] KeyringError),
    /// The leaves are not what was signed, or make no tree.
    #[error(transparent)]
    Tree(#[from] MerkleError),
    /// Its keys are those of another ledger.
    #[error("the keys are those of another ledger")]
    OtherLedger,
    /// The key that it names did not sign this.
    #[error("key {key_id} did not sign this")]
    NotGenuine {
        /// Which key.
        key_id: KeyId,
    },
}

/// Signs a batch that begins with event `first_seq`: `leaves` are those of the leases that it issues or
/// renews, in the order of its events.
pub fn sign_batch(
    key: &LedgerSigningKey,
    ledger: LedgerId,
    first_seq: u64,
    leaves: &[Leaf],
) -> Result<SignedBatch, MerkleError> {
    let tree = MerkleTree::new(leaves)?;
    let (key_id, count, root) = (key.id(), tree.leaf_count(), tree.root());
    let signature = key.sign(&message_to_sign(ledger, key_id, first_seq, count, &root));
    Ok(SignedBatch { signature: BatchSignature { key_id, first_seq, count, root, signature }, tree })
}

impl BatchSignature {
    /// How long its byte form is.
    pub const BYTES: usize = 1 + 8 + 8 + 2 + 32 + 64;

    /// Who signed.
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The first event of the batch.
    pub fn first_seq(&self) -> u64 {
        self.first_seq
    }

    /// How many leases are signed.
    pub fn leaf_count(&self) -> u16 {
        self.count
    }

    /// The form that is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.key_id.0);
        bytes.extend_from_slice(&self.first_seq.to_be_bytes());
        bytes.extend_from_slice(&self.count.to_be_bytes());
        bytes.extend_from_slice(&self.root);
        bytes.extend_from_slice(&self.signature);
        bytes
    }

    /// Reads what [`Self::to_bytes`] writes, and nothing else.
    pub fn from_bytes(bytes: &[u8]) -> Result<BatchSignature, DecodeError> {
        let mut reader = ByteReader::with_version(VERSION, bytes)?;
        let (key_id, first_seq) = (KeyId(reader.array()?), reader.u64()?);
        let (count, root, signature) = (reader.u16()?, reader.array()?, reader.array()?);
        reader.finish()?;
        if count == 0 || count > MAX_LEAVES {
            return Err(DecodeError::Invalid { part: "count", problem: "is not from 1 to 4096" });
        }
        Ok(BatchSignature { key_id, first_seq, count, root, signature })
    }

    /// Sees that exactly these leases were signed for `ledger`, by a key that might. What comes back makes
    /// the signature of each of them.
    pub fn verify(
        self,
        keyring: &Keyring,
        ledger: LedgerId,
        leaves: &[Leaf],
    ) -> Result<SignedBatch, SignatureError> {
        let tree = MerkleTree::new(leaves)?;
        if tree.leaf_count() != self.count || tree.root() != self.root {
            return Err(MerkleError::LeafNotFound.into());
        }
        verify_root(keyring, ledger, self.key_id, self.first_seq, (self.count, &self.root), &self.signature)?;
        Ok(SignedBatch { signature: self, tree })
    }
}

impl SignedBatch {
    /// What to store beside the batch.
    pub fn signature(&self) -> &BatchSignature {
        &self.signature
    }

    /// The signature of the lease whose leaf has this number, counted from 0.
    pub fn lease_signature(&self, index: u16) -> Result<LeaseSignature, MerkleError> {
        let BatchSignature { key_id, first_seq, count, signature, .. } = self.signature;
        let place = LeafPosition::new(index, count)?;
        LeaseSignature::new(key_id, first_seq, place, signature, self.tree.path(index)?)
    }
}

/// Sees that `keyring` has the key, and that the key signed the tree with this count and root.
pub(super) fn verify_root(
    keyring: &Keyring,
    ledger: LedgerId,
    key_id: KeyId,
    first_seq: u64,
    (count, root): (u16, &Node),
    signature: &SignatureBytes,
) -> Result<(), SignatureError> {
    if keyring.ledger() != ledger {
        return Err(SignatureError::OtherLedger);
    }
    let key = keyring.key_valid_at(key_id, first_seq)?;
    let is_genuine =
        key.is_valid_signature(&message_to_sign(ledger, key_id, first_seq, count, root), signature);
    if is_genuine { Ok(()) } else { Err(SignatureError::NotGenuine { key_id }) }
}

/// What is signed.
pub(super) fn message_to_sign(
    ledger: LedgerId,
    key_id: KeyId,
    first_seq: u64,
    count: u16,
    root: &Node,
) -> Vec<u8> {
    let (first_seq, count) = (first_seq.to_be_bytes(), count.to_be_bytes());
    let parts: [&[u8]; 6] = [b"tenure.batch.v1", &ledger.0, &key_id.0, &first_seq, &count, root];
    parts.concat()
}

/// Who vouches for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckpointSignature {
    key_id: KeyId,
    signature: SignatureBytes,
}

impl CheckpointSignature {
    pub(crate) fn sign(key: &LedgerSigningKey, ledger: LedgerId, digest: &[u8]) -> CheckpointSignature {
        let key_id = key.id();
        CheckpointSignature {
            key_id,
            signature: key.sign(&checkpoint_message_to_sign(ledger, key_id, digest)),
        }
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
            key.is_valid_signature(
                &checkpoint_message_to_sign(keyring.ledger(), self.key_id, digest),
                &self.signature,
            )
        })
    }
}

fn checkpoint_message_to_sign(ledger: LedgerId, key_id: KeyId, digest: &[u8]) -> Vec<u8> {
    let parts: [&[u8]; 4] = [b"tenure.checkpoint.v1", &ledger.0, &key_id.0, digest];
    parts.concat()
}
