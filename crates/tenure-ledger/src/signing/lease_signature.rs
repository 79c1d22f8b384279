//! The signature of one lease, whole: what a `registrar_signature` is outside.
//!
//! ```text
//! 1 | key id, 8 | first seq, 8 | count, 2 | index, 2 | signature, 64 | path, 0 to 12 times 32
//! ```
//!
//! How long the path is follows from count and index, so a signature has one form only.

use super::batch_signature::{self, SignatureError};
use super::key::{KeyId, LedgerSigningKey, PublicKey, SignatureBytes};
use super::keyring::Keyring;
use super::leaf::Leaf;
use super::merkle::{LeafPosition, MAX_PATH_LENGTH, MerkleError, Node, root_from_path};
use super::{ByteReader, DecodeError};
use crate::ledger::LedgerId;

const VERSION: u8 = 1;

/// The signature of a batch, and the way from one of its leases to what was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSignature {
    key_id: KeyId,
    first_seq: u64,
    position: LeafPosition,
    signature: SignatureBytes,
    path: Vec<Node>,
}

impl LeaseSignature {
    /// How long the longest is.
    pub const MAX_BYTES: usize = Self::BYTES_WITHOUT_PATH + MAX_PATH_LENGTH * 32;

    const BYTES_WITHOUT_PATH: usize = 1 + 8 + 8 + 2 + 2 + 64;

    pub(super) fn new(
        key_id: KeyId,
        first_seq: u64,
        place: LeafPosition,
        signature: SignatureBytes,
        path: Vec<Node>,
    ) -> Result<Self, MerkleError> {
        let (found, needed) = (path.len(), place.path_length());
        if found != needed {
            return Err(MerkleError::PathLength { found, expected: needed });
        }
        Ok(Self { key_id, first_seq, position: place, signature, path })
    }

    /// Signs one lease by itself, outside of any batch: for who asks again, when the tree of its batch is gone. It
    /// says that it belongs to event 0, which no batch does.
    pub fn sign_single(key: &LedgerSigningKey, ledger: LedgerId, leaf: Leaf) -> LeaseSignature {
        let signed =
            batch_signature::sign_batch(key, ledger, 0, &[leaf]).and_then(|batch| batch.lease_signature(0));
        signed.expect("one leaf makes a tree")
    }

    /// Who signed.
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The first event of the batch that holds the lease.
    pub fn first_seq(&self) -> u64 {
        self.first_seq
    }

    /// Which of the batch's leases this is.
    pub fn position(&self) -> LeafPosition {
        self.position
    }

    /// The form that is given out.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES_WITHOUT_PATH + self.path.len() * 32);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.key_id.0);
        bytes.extend_from_slice(&self.first_seq.to_be_bytes());
        bytes.extend_from_slice(&self.position.leaf_count().to_be_bytes());
        bytes.extend_from_slice(&self.position.index().to_be_bytes());
        bytes.extend_from_slice(&self.signature);
        bytes.extend(self.path.iter().flatten());
        bytes
    }

    /// Reads what [`Self::to_bytes`] writes, and nothing else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::with_version(VERSION, bytes)?;
        let (key_id, first_seq) = (KeyId(reader.array()?), reader.u64()?);
        let (count, index) = (reader.u16()?, reader.u16()?);
        let place = LeafPosition::new(index, count)
            .map_err(|_| DecodeError::Invalid { part: "place", problem: "is not in a tree of 1 to 4096" })?;
        let signature = reader.array()?;
        let path = (0..place.path_length()).map(|_| reader.array()).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(Self { key_id, first_seq, position: place, signature, path })
    }

    /// Sees that the lease with this leaf was signed for `ledger`, by a key of `keyring` that might.
    pub fn verify(&self, keyring: &Keyring, ledger: LedgerId, leaf: Leaf) -> Result<(), SignatureError> {
        let root = root_from_path(leaf, self.position, &self.path)?;
        let tree = (self.position.leaf_count(), &root);
        batch_signature::verify_root(keyring, ledger, self.key_id, self.first_seq, tree, &self.signature)
    }

    /// Whether `key` signed the lease with this leaf, where nobody knows the ledger.
    pub(super) fn is_signed_by(&self, key: PublicKey, ledger: LedgerId, leaf: Leaf) -> bool {
        root_from_path(leaf, self.position, &self.path).is_ok_and(|root| {
            let message = batch_signature::message_to_sign(
                ledger,
                self.key_id,
                self.first_seq,
                self.position.leaf_count(),
                &root,
            );
            key.id() == self.key_id && key.is_valid_signature(&message, &self.signature)
        })
    }
}
