//! One durable write: events, and the hash that ties it to everything before.

use std::fmt;

use prost::Message;
use tenure_core::ledger::EventRecord;
use tenure_core::stored;

use crate::ledger::Seq;

/// A BLAKE3 hash over a batch and, through the one before, over the whole ledger up to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hash(pub [u8; 32]);

/// Events that became durable together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The number of the first event.
    pub first: Seq,
    /// The events.
    pub records: Vec<EventRecord>,
    /// The registrar's signature over the leases in it.
    pub seal: Vec<u8>,
    /// The hash of this batch.
    pub hash: Hash,
}

/// The hash of a batch whose bytes are `content`, after one with the hash `previous`.
pub fn chain(previous: Hash, content: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&previous.0);
    hasher.update(content);
    Hash(*hasher.finalize().as_bytes())
}

impl Batch {
    /// The number of the last event.
    pub fn last(&self) -> Seq {
        Seq(self.first.0 + self.records.len() as u64 - 1)
    }

    /// The bytes that are stored and hashed. They are never made again from a decoded batch.
    pub(crate) fn encode(first: Seq, records: &[EventRecord], seal: &[u8]) -> Vec<u8> {
        let record = |record: &EventRecord| stored::Record {
            event_type: record.event_type.clone(),
            session_id: record.session_id.clone(),
            actor_id: record.actor_id.clone(),
            payload: record.payload.clone(),
        };
        let records = records.iter().map(record).collect();
        stored::Batch { first_seq: first.0, records, seal: seal.to_vec() }.encode_to_vec()
    }

    /// The batch whose stored bytes are `content`. `None`: they are not a batch that begins at `first`.
    pub(crate) fn decode(first: Seq, content: &[u8], hash: Hash) -> Option<Batch> {
        let stored = stored::Batch::decode(content).ok()?;
        let record = |record: stored::Record| {
            EventRecord::new(record.event_type, record.session_id, record.actor_id, record.payload)
        };
        let records: Vec<_> = stored.records.into_iter().map(record).collect();
        let fits = stored.first_seq == first.0 && !records.is_empty();
        fits.then_some(Batch { first, records, seal: stored.seal, hash })
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}
