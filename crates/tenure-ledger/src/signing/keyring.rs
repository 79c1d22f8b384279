//! Which keys a ledger's batches may be signed with, as its own entries say.

use std::collections::BTreeMap;

use thiserror::Error;

use super::key::{KeyId, PublicKey, SignatureBytes};
use super::key_entry::{KeyAdded, KeyEntry, KeyRetired};
use crate::ledger::LedgerId;

/// The keys of one ledger, each vouched for by one before it.
///
/// The first key vouches for itself. Every later entry is signed by a key that was added before it and is
/// not retired; where a ledger has one key at a time, that is the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyring {
    ledger: LedgerId,
    keys: BTreeMap<KeyId, KeyRecord>,
    first: Option<KeyId>,
    /// The number of the latest entry.
    latest: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyRecord {
    public_key: PublicKey,
    added_at: u64,
    retired_at: Option<u64>,
}

/// Why an entry does not follow, or a key does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// No entry added this key.
    #[error("key {key_id} is not one of this ledger")]
    Unknown {
        /// Which key.
        key_id: KeyId,
    },
    /// The key may not sign any more.
    #[error("key {key_id} is retired since event {since}; what is signed belongs to event {seq}")]
    Retired {
        /// Which key.
        key_id: KeyId,
        /// Since which event.
        since: u64,
        /// What it was to vouch for.
        seq: u64,
    },
    /// The key did not exist yet.
    #[error("key {key_id} was added by event {added_at}; what is signed belongs to event {seq}")]
    NotYetAdded {
        /// Which key.
        key_id: KeyId,
        /// By which event it was added.
        added_at: u64,
        /// What it was to vouch for.
        seq: u64,
    },
    /// A key is added once, and one that was retired never comes back.
    #[error("key {key_id} was added before")]
    AddedTwice {
        /// Which key.
        key_id: KeyId,
    },
    /// Without any key, nothing could ever be added again. Add the next one first.
    #[error("key {key_id} is the last one; add another before it is retired")]
    LastKey {
        /// Which key.
        key_id: KeyId,
    },
    /// The id is not that of the key beside it.
    #[error("key {key_id} is not the id of the key beside it")]
    KeyIdMismatch {
        /// What it says.
        key_id: KeyId,
    },
    /// The signature is not that of the key which is said to have signed.
    #[error("the entry about key {key_id} was not signed by key {signed_by}")]
    InvalidSignature {
        /// What the entry is about.
        key_id: KeyId,
        /// Who is said to have signed it.
        signed_by: KeyId,
    },
    /// Entries come in the ledger's order.
    #[error("event {seq} came after event {latest}")]
    OutOfOrder {
        /// Which entry.
        seq: u64,
        /// What came before.
        latest: u64,
    },
}

impl Keyring {
    /// The keys of a ledger that has none yet.
    pub fn new(ledger: LedgerId) -> Keyring {
        Keyring { ledger, keys: BTreeMap::new(), first: None, latest: None }
    }

    /// Records what event `seq` says of a key. An entry that does not follow changes nothing.
    pub fn apply(&mut self, seq: u64, entry: &KeyEntry) -> Result<(), KeyringError> {
        if let Some(latest) = self.latest.filter(|latest| seq <= *latest) {
            return Err(KeyringError::OutOfOrder { seq, latest });
        }
        match entry {
            KeyEntry::Added(added) => self.add(seq, added)?,
            KeyEntry::Retired(retired) => self.retire(seq, retired)?,
        }
        self.latest = Some(seq);
        Ok(())
    }

    /// Which ledger's they are.
    pub fn ledger(&self) -> LedgerId {
        self.ledger
    }

    /// The key that everything else rests on. Whether it is the right one, the ledger cannot say.
    pub fn first(&self) -> Option<PublicKey> {
        self.first.and_then(|first| self.public_key(first))
    }

    /// The key with this id, retired or not.
    pub fn public_key(&self, key_id: KeyId) -> Option<PublicKey> {
        self.keys.get(&key_id).map(|known| known.public_key)
    }

    /// By which event the key was retired; nothing if it was not.
    pub fn retired_at(&self, key_id: KeyId) -> Option<u64> {
        self.keys.get(&key_id)?.retired_at
    }

    /// Every key that may sign now.
    pub fn active_keys(&self) -> impl Iterator<Item = PublicKey> {
        self.keys.values().filter(|known| known.retired_at.is_none()).map(|known| known.public_key)
    }

    /// Every key that the ledger ever had, by the event that added it, with the one that retired it.
    pub fn all_keys(&self) -> impl Iterator<Item = (u64, PublicKey, Option<u64>)> {
        let mut all: Vec<_> =
            self.keys.values().map(|known| (known.added_at, known.public_key, known.retired_at)).collect();
        all.sort_unstable_by_key(|(added_at, ..)| *added_at);
        all.into_iter()
    }

    /// The key with this id, if it may sign a batch that begins with event `seq`: later than the event that
    /// added it, and not later than the one that retired it.
    pub fn key_valid_at(&self, key_id: KeyId, seq: u64) -> Result<PublicKey, KeyringError> {
        let KeyRecord { public_key, added_at, retired_at } =
            *self.keys.get(&key_id).ok_or(KeyringError::Unknown { key_id })?;
        if seq <= added_at {
            return Err(KeyringError::NotYetAdded { key_id, added_at, seq });
        }
        match retired_at {
            // A batch is signed as a whole, also the one that holds the retirement.
            Some(since) if seq > since => Err(KeyringError::Retired { key_id, since, seq }),
            _ => Ok(public_key),
        }
    }

    fn add(&mut self, seq: u64, added: &KeyAdded) -> Result<(), KeyringError> {
        let KeyAdded { key_id, public_key, signed_by, signature } = added;
        if public_key.id() != *key_id {
            return Err(KeyringError::KeyIdMismatch { key_id: *key_id });
        }
        if self.keys.contains_key(key_id) {
            return Err(KeyringError::AddedTwice { key_id: *key_id });
        }
        let is_first = self.keys.is_empty() && signed_by == key_id;
        let signer = if is_first { *public_key } else { self.key_valid_at(*signed_by, seq)? };
        verify_entry(*key_id, *signed_by, signer, &added.message_to_sign(self.ledger), signature)?;
        self.keys.insert(*key_id, KeyRecord { public_key: *public_key, added_at: seq, retired_at: None });
        self.first.get_or_insert(*key_id);
        Ok(())
    }

    fn retire(&mut self, seq: u64, retired: &KeyRetired) -> Result<(), KeyringError> {
        let KeyRetired { key_id, signed_by, signature } = retired;
        self.key_valid_at(*key_id, seq)?;
        let signer = self.key_valid_at(*signed_by, seq)?;
        verify_entry(*key_id, *signed_by, signer, &retired.message_to_sign(self.ledger), signature)?;
        if self.active_keys().count() == 1 {
            return Err(KeyringError::LastKey { key_id: *key_id });
        }
        if let Some(known) = self.keys.get_mut(key_id) {
            known.retired_at = Some(seq);
        }
        Ok(())
    }
}

fn verify_entry(
    key_id: KeyId,
    signed_by: KeyId,
    signer: PublicKey,
    message: &[u8],
    signature: &SignatureBytes,
) -> Result<(), KeyringError> {
    if signer.is_valid_signature(message, signature) {
        Ok(())
    } else {
        Err(KeyringError::InvalidSignature { key_id, signed_by })
    }
}
