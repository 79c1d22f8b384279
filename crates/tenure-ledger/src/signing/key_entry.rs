//! Keys as ledger entries: each is vouched for by one that was there before.

use prost::Message;
use tenure_core::lease::REGISTRAR;
use tenure_core::ledger::EventRecord;
use tenure_core::proto::{self, key_event};
use thiserror::Error;

use super::key::{KeyId, LedgerSigningKey, PublicKey, SignatureBytes};
use crate::ledger::LedgerId;

const KEY_ADDED: &str = "key.added";
const KEY_RETIRED: &str = "key.retired";

/// What the ledger says of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyEntry {
    /// A key may sign from here on.
    Added(KeyAdded),
    /// A key may sign no longer.
    Retired(KeyRetired),
}

/// A key may sign batches from here on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyAdded {
    /// Its id.
    pub key_id: KeyId,
    /// The key.
    pub public_key: PublicKey,
    /// Who vouches for it; the first key of a ledger vouches for itself.
    pub signed_by: KeyId,
    /// Over all of the above and the ledger's id.
    pub signature: SignatureBytes,
}

/// A key may sign no batch from here on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRetired {
    /// Which key.
    pub key_id: KeyId,
    /// Who says so; a key may say so of itself.
    pub signed_by: KeyId,
    /// Over all of the above and the ledger's id.
    pub signature: SignatureBytes,
}

impl KeyAdded {
    /// Adds `public_key` to `ledger`, vouched for by `by`: another key, or itself when it is the first.
    pub fn new(ledger: LedgerId, public_key: PublicKey, by: &LedgerSigningKey) -> KeyAdded {
        let (key_id, signed_by) = (public_key.id(), by.id());
        let mut added = KeyAdded { key_id, public_key, signed_by, signature: [0; 64] };
        added.signature = by.sign(&added.message_to_sign(ledger));
        added
    }

    /// What is signed.
    pub(super) fn message_to_sign(&self, ledger: LedgerId) -> Vec<u8> {
        let parts: [&[u8]; 5] = [
            b"tenure.key-added.v1",
            &ledger.0,
            &self.key_id.0,
            self.public_key.as_bytes(),
            &self.signed_by.0,
        ];
        parts.concat()
    }
}

impl KeyRetired {
    /// Retires `key_id` in `ledger`, by the word of `by`.
    pub fn new(ledger: LedgerId, key_id: KeyId, by: &LedgerSigningKey) -> KeyRetired {
        let mut retired = KeyRetired { key_id, signed_by: by.id(), signature: [0; 64] };
        retired.signature = by.sign(&retired.message_to_sign(ledger));
        retired
    }

    /// What is signed.
    pub(super) fn message_to_sign(&self, ledger: LedgerId) -> Vec<u8> {
        let parts: [&[u8]; 4] = [b"tenure.key-retired.v1", &ledger.0, &self.key_id.0, &self.signed_by.0];
        parts.concat()
    }
}

/// A record of a key that this version cannot read. Stop and call a human: the ledger is damaged, or newer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyEntryError {
    /// The bytes are no such message.
    #[error("the payload of {event_type} is not a protobuf message of its kind")]
    Protobuf {
        /// The record's type.
        event_type: String,
        /// What prost says.
        #[source]
        source: prost::DecodeError,
    },
    /// A part is missing or cannot be.
    #[error("{event_type} cannot be read: its {part} {problem}")]
    Malformed {
        /// The record's type.
        event_type: String,
        /// Which part.
        part: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl KeyEntry {
    /// The record that stands in the ledger.
    pub fn to_record(&self) -> EventRecord {
        let (event_type, event) = match self {
            KeyEntry::Added(added) => {
                let added = proto::KeyAdded {
                    key_id: added.key_id.0.to_vec(),
                    public_key: added.public_key.as_bytes().to_vec(),
                    signed_by: added.signed_by.0.to_vec(),
                    signature: added.signature.to_vec(),
                };
                (KEY_ADDED, key_event::Event::Added(added))
            }
            KeyEntry::Retired(retired) => {
                let retired = proto::KeyRetired {
                    key_id: retired.key_id.0.to_vec(),
                    signed_by: retired.signed_by.0.to_vec(),
                    signature: retired.signature.to_vec(),
                };
                (KEY_RETIRED, key_event::Event::Retired(retired))
            }
        };
        EventRecord::new(event_type, "", REGISTRAR, proto::KeyEvent { event: Some(event) }.encode_to_vec())
    }

    /// The entry in `record`; nothing if it says nothing of keys.
    pub fn from_record(record: &EventRecord) -> Result<Option<KeyEntry>, KeyEntryError> {
        let event_type = record.event_type.as_str();
        if event_type.split('.').next() != Some("key") {
            return Ok(None);
        }
        let malformed =
            |(part, problem)| KeyEntryError::Malformed { event_type: event_type.into(), part, problem };
        let message = proto::KeyEvent::decode(record.payload.as_slice())
            .map_err(|source| KeyEntryError::Protobuf { event_type: event_type.into(), source })?;
        let entry = match message.event.ok_or_else(|| malformed(("payload", "is empty")))? {
            key_event::Event::Added(added) => KeyEntry::Added(read_added(&added).map_err(malformed)?),
            key_event::Event::Retired(retired) => {
                KeyEntry::Retired(read_retired(&retired).map_err(malformed)?)
            }
        };
        let expected = if matches!(entry, KeyEntry::Added(_)) { KEY_ADDED } else { KEY_RETIRED };
        if event_type == expected {
            Ok(Some(entry))
        } else {
            Err(malformed(("type", "is not that of its payload")))
        }
    }
}

type Problem = (&'static str, &'static str);

fn read_added(added: &proto::KeyAdded) -> Result<KeyAdded, Problem> {
    let public_key = PublicKey::from_bytes(&exact_bytes("public_key", &added.public_key)?)
        .map_err(|_| ("public_key", "is none that can be trusted"))?;
    let key_id = KeyId(exact_bytes("key_id", &added.key_id)?);
    if key_id != public_key.id() {
        return Err(("key_id", "is not that of its public key"));
    }
    let signed_by = KeyId(exact_bytes("signed_by", &added.signed_by)?);
    Ok(KeyAdded { key_id, public_key, signed_by, signature: exact_bytes("signature", &added.signature)? })
}

fn read_retired(retired: &proto::KeyRetired) -> Result<KeyRetired, Problem> {
    Ok(KeyRetired {
        key_id: KeyId(exact_bytes("key_id", &retired.key_id)?),
        signed_by: KeyId(exact_bytes("signed_by", &retired.signed_by)?),
        signature: exact_bytes("signature", &retired.signature)?,
    })
}

fn exact_bytes<const N: usize>(part: &'static str, bytes: &[u8]) -> Result<[u8; N], Problem> {
    bytes.try_into().map_err(|_| (part, "has the wrong length"))
}
