//! Signatures: prove a grant to any party that knows the registrar's public key.
//!
//! A batch is signed once, however many leases it issues or renews. Each of those gives a [`Leaf`], and all events together
//! give the last one; the leaves make a [Merkle tree](merkle); a [`BatchSignature`] signs its root, and a [`LeaseSignature`]
//! is that signature with the path from one leaf to the root. A [`Passport`] is a lease's terms with its signature, as text.
//!
//! # What a signature proves
//!
//! The holder of a key stated these terms: in this ledger, this fence was granted to this holder, for this resource and in
//! this mode, from one tick to another on the registrar's own clock.
//!
//! # What it does not prove
//!
//! - **That the lease is still active.** It may have been released, revoked or renewed since, and a tick of the registrar's
//!   clock says nothing to another clock. A resource keeps the highest fence that it has seen and rejects lower ones; that,
//!   not a signature, keeps a late writer out.
//! - **That its bearer is the holder.** A passport is no secret. What a holder acts with is the lease's token.
//! - **That a lease ended, or did not.** A passport says how a lease began. How it ended stands in the ledger, whose batches
//!   are signed whole: the last leaf of each is all of its events.
//! - **When it was signed.** The batch number is the signer's word. Retiring a key keeps it out of later batches of an
//!   honest ledger; a thief can still sign with an earlier number.
//! - **That the ledger is the right one.** The first key of a ledger vouches for itself, so a ledger written
//!   anew with another key is consistent too. Compare [`Keyring::first`] with a key that came another way.
//! - **That no other holder was granted the same.** The owner of the key can sign anything. The promise that two
//!   leases never collide is the registrar's, not the signature's.

mod batch_signature;
mod key;
mod key_entry;
mod keyring;
mod leaf;
mod lease_signature;
pub mod merkle;
mod passport;

pub(crate) use batch_signature::CheckpointSignature;
pub use batch_signature::{BatchSignature, SignatureError, SignedBatch, sign_batch};
pub use key::{KeyError, KeyFileError, KeyId, LedgerSigningKey, PublicKey, SignatureBytes};
pub use key_entry::{KeyAdded, KeyEntry, KeyEntryError, KeyRetired};
pub use keyring::{Keyring, KeyringError};
pub use leaf::{Leaf, SignedTerms};
pub use lease_signature::LeaseSignature;
pub use passport::{Claims, Passport, PassportError, TrustedKeys};
use thiserror::Error;

pub use crate::ledger::LedgerId;

/// Bytes that are not the form they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Another program wrote this, or a newer version of this one.
    #[error("form {found} is unknown; this version reads form {known}")]
    UnknownVersion {
        /// What it says.
        found: u8,
        /// What can be read.
        known: u8,
    },
    /// It ends too early.
    #[error("it is cut off")]
    Truncated,
    /// Something follows where nothing may.
    #[error("something follows its end")]
    TrailingBytes,
    /// A part has a value that it cannot have.
    #[error("its {part} {problem}")]
    Invalid {
        /// Which part.
        part: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Takes a byte form apart from its beginning. Every method fails where it ends too early.
struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    /// Reads `bytes`, which must begin with the version byte `known`.
    fn with_version(known: u8, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Self { rest: bytes };
        match reader.array()? {
            [found] if found == known => Ok(reader),
            [found] => Err(DecodeError::UnknownVersion { found, known }),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// A text with its length before it.
    fn text(&mut self, part: &'static str) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Invalid { part, problem: "is not UTF-8" })
    }

    /// Bytes with their length before them.
    fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = u32::from_be_bytes(self.array()?);
        let length = usize::try_from(length).map_err(|_| DecodeError::Truncated)?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// All that is left.
    fn remaining(self) -> &'a [u8] {
        self.rest
    }

    /// Sees that nothing is left.
    fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::TrailingBytes) }
    }
}

/// Writes a text with its length before it, so that no two lists of texts give the same bytes.
fn put_text(bytes: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    let text = text.as_ref();
    // A name has at most 4 KiB. Were one ever longer than 4 GiB, its length would be wrong and nothing verify.
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(text);
}
