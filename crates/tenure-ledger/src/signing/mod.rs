//! Signatures: who granted what, provable to whoever knows the registrar's public key.
//!
//! A batch is signed once, however many leases it issues or renews. Each of those gives a [`Leaf`], and all events
//! together give the last one; the leaves make a [Merkle tree](merkle); a [`BatchSignature`] signs its root, and a [`LeaseSignature`] is that signature
//! with the path from one leaf to the root. A [`Passport`] is a lease's terms with its signature, as text.
//!
//! # What a signature proves
//!
//! That the holder of a key stated these terms: in this ledger, this fence was granted to this holder, for
//! this resource and in this mode, from one tick to another on the registrar's own clock.
//!
//! # What it does not prove
//!
//! - **That the lease still lives.** It may have been released, revoked or renewed since, and a tick of the
//!   registrar's clock says nothing to another clock. A resource keeps the highest fence that it has seen and
//!   refuses lower ones; that, not a signature, keeps a late writer out.
//! - **That who shows it is the holder.** A passport is no secret. What a holder acts with is the lease's token.
//! - **That a lease ended, or did not.** A passport says how a lease began. How it ended stands in the ledger, whose
//!   batches are signed whole: the last leaf of each is all of its events.
//! - **When it was signed.** The number of the batch is the signer's word. Retiring a key keeps it out of later
//!   batches of an honest ledger; it does not stop who stole it from signing with an earlier number.
//! - **That the ledger is the right one.** The first key of a ledger vouches for itself, so a ledger written
//!   anew with another key is consistent too. Compare [`Keyring::first`] with a key that came another way.
//! - **That nobody else was granted the same.** Whoever has the key can sign anything. The promise that two
//!   leases never collide is the registrar's, not the signature's.

mod batch_signature;
pub(crate) mod byte_format;
mod checkpoint_signature;
mod key;
mod key_entry;
mod key_file;
mod keyring;
mod leaf;
mod lease_signature;
pub mod merkle;
mod passport;

pub use crate::ledger::LedgerId;
pub use batch_signature::{BatchSignature, SignatureError, SignedBatch, sign_batch};
pub use byte_format::DecodeError;
pub(crate) use checkpoint_signature::CheckpointSignature;
pub use key::{KeyError, KeyId, LedgerSigningKey, PublicKey, SignatureBytes};
pub use key_entry::{KeyAdded, KeyEntry, KeyEntryError, KeyRetired};
pub use key_file::KeyFileError;
pub use keyring::{Keyring, KeyringError};
pub use leaf::{Leaf, SignedTerms};
pub use lease_signature::LeaseSignature;
pub use passport::{Claims, Passport, PassportError, TrustedKeys};
