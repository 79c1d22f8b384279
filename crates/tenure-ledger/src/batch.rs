//! One durable write: events, and the hash that ties it to everything before.

use std::fmt;

use prost::Message;
use tenure_core::kernel::{EncodeContext, Event, LedgerTag, Tick, decode, encode_to};
use tenure_core::ledger::EventRecord;
use tenure_core::proto;
use tenure_core::protobuf_writer::ProtobufWriter;

use crate::ledger::{Head, Seq};

/// A BLAKE3 hash over a batch and, through the one before, over the whole ledger up to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ChainHash(pub [u8; 32]);

/// Events that became durable together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The number of the first event.
    pub first: Seq,
    /// The events.
    pub records: Vec<EventRecord>,
    /// The registrar's signature over what is in it.
    pub signature: Vec<u8>,
    /// The hash of this batch.
    pub hash: ChainHash,
}

/// The hash of a batch whose bytes are `content`, after one with the hash `previous`.
pub fn chain_hash(previous: ChainHash, content: &[u8]) -> ChainHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&previous.0);
    hasher.update(content);
    ChainHash(*hasher.finalize().as_bytes())
}

impl Batch {
    /// The number of the last event.
    pub fn last(&self) -> Seq {
        Seq(self.first.0 + self.records.len() as u64 - 1)
    }

    /// Where the ledger ends with this batch.
    pub fn head(&self) -> Head {
        Head { seq: self.last(), hash: self.hash }
    }

    /// When the first of its events happened that has a tick: entries about keys have none.
    pub(crate) fn first_tick(&self, tag: LedgerTag) -> Option<Tick> {
        let mut events = self.records.iter().filter_map(|record| decode(record, tag).ok().flatten());
        events.next().map(|event| event.occurred_at())
    }

    /// The batch whose stored bytes are `content`. `None`: they are not a batch that begins at `first`.
    pub(crate) fn decode(first: Seq, content: &[u8], hash: ChainHash) -> Option<Batch> {
        let stored = proto::Batch::decode(content).ok()?;
        let records: Vec<_> = stored.records.into_iter().map(decode_record).collect();
        let is_valid = stored.first_seq == first.0 && !records.is_empty();
        is_valid.then_some(Batch { first, records, signature: stored.seal, hash })
    }
}

/// A batch as it is stored and hashed. The bytes are made once, and never again from a decoded batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchBytes {
    first: Seq,
    count: u64,
    bytes: Vec<u8>,
    /// Where they begin: what was kept free for the number of the first event is larger than nearly all need.
    start: usize,
}

impl BatchBytes {
    /// The events from `first` on, without a seal.
    pub fn new(first: Seq, records: &[EventRecord]) -> BatchBytes {
        let mut all =
            EncodedRecords::with_capacity(records.iter().map(|record| record.payload.len() + 64).sum());
        records.iter().for_each(|record| all.push_record(record));
        BatchBytes::from_records(first, all)
    }

    /// The same of events that are written already.
    pub fn from_records(first: Seq, records: EncodedRecords) -> BatchBytes {
        let (mut bytes, count) = records.into_parts();
        let mut number = Vec::with_capacity(PREFIX_CAPACITY);
        ProtobufWriter::append_to(&mut number).number(1, first.0);
        let start = PREFIX_CAPACITY - number.len();
        bytes[start..PREFIX_CAPACITY].copy_from_slice(&number);
        BatchBytes { first, count, bytes, start }
    }

    /// The same with a signature behind the events.
    #[must_use]
    pub fn with_signature(mut self, signature: &[u8]) -> BatchBytes {
        ProtobufWriter::append_to(&mut self.bytes).bytes(3, signature);
        self
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// What they say, with the hash that the ledger gave them; nothing if there are no events in it.
    pub fn decode(&self, hash: ChainHash) -> Option<Batch> {
        Batch::decode(self.first, self.as_slice(), hash)
    }

    /// The number of the first event.
    pub fn first(&self) -> Seq {
        self.first
    }

    /// The number of the last event. With no events that is the one before the first.
    pub fn last(&self) -> Seq {
        Seq((self.first.0 + self.count).saturating_sub(1))
    }

    /// Whether there are no events in it.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

/// Events as a batch stores them, one behind the other. They are written once, here: when it is known which numbers
/// they get, [`BatchBytes`](crate::BatchBytes) puts what is missing around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRecords {
    bytes: Vec<u8>,
    count: u64,
}

/// Kept free before the first event: for the number of the first one, which stands there in a batch.
pub(crate) const PREFIX_CAPACITY: usize = 11;

/// A seal, which comes behind the last one, is no longer than this.
const SIGNATURE_CAPACITY: usize = 128;

impl EncodedRecords {
    /// No events yet, and room for so many bytes.
    pub fn with_capacity(bytes: usize) -> EncodedRecords {
        let mut bytes_with_prefix = Vec::with_capacity(PREFIX_CAPACITY + bytes + SIGNATURE_CAPACITY);
        bytes_with_prefix.resize(PREFIX_CAPACITY, 0);
        EncodedRecords { bytes: bytes_with_prefix, count: 0 }
    }

    /// Adds an event.
    pub fn push(&mut self, event: &Event, stamp: EncodeContext<'_>) {
        self.push_encoded(|record| encode_to(event, stamp, record));
    }

    /// Adds an event that was encoded already.
    pub fn push_record(&mut self, record: &EventRecord) {
        let EventRecord { event_type, session_id, actor_id, payload, .. } = record;
        self.push_encoded(|record| {
            record.text(1, event_type).text(2, session_id).text(3, actor_id).bytes(4, payload);
        });
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        usize::try_from(self.count).expect("they are all in memory")
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many bytes they take.
    pub fn byte_size(&self) -> usize {
        self.bytes.len() - PREFIX_CAPACITY
    }

    /// The events one by one, for whoever wants to look at them.
    pub fn decode(&self) -> Vec<EventRecord> {
        let batch =
            proto::Batch::decode(&self.bytes[PREFIX_CAPACITY..]).expect("what was just written can be read");
        batch.records.into_iter().map(decode_record).collect()
    }

    pub(crate) fn into_parts(self) -> (Vec<u8>, u64) {
        (self.bytes, self.count)
    }

    fn push_encoded(&mut self, write: impl FnOnce(&mut ProtobufWriter<'_>)) {
        ProtobufWriter::append_to(&mut self.bytes).message(2, write);
        self.count += 1;
    }
}

/// A record as it is stored, as the world sees it.
pub(crate) fn decode_record(record: proto::Record) -> EventRecord {
    EventRecord::new(record.event_type, record.session_id, record.actor_id, record.payload)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record() -> impl Strategy<Value = EventRecord> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..200);
        (".{0,40}", ".{0,9}", ".{0,140}", bytes)
            .prop_map(|(kind, session, actor, payload)| EventRecord::new(kind, session, actor, payload))
    }

    proptest! {
        // Written by hand for speed; it must be what everybody who has the .proto file reads.
        #[test]
        fn batch_bytes_equal_the_protobuf_encoding(
            first in any::<u64>(), records in proptest::collection::vec(record(), 0..5), signature in proptest::collection::vec(any::<u8>(), 0..150),
        ) {
            let stored_record = |record: &EventRecord| proto::Record {
                event_type: record.event_type.clone(),
                session_id: record.session_id.clone(),
                actor_id: record.actor_id.clone(),
                payload: record.payload.clone(),
            };
            let expected = proto::Batch { first_seq: first, records: records.iter().map(stored_record).collect(), seal: signature.clone() };
            let bytes = BatchBytes::new(Seq(first), &records).with_signature(&signature);
            prop_assert_eq!(bytes.as_slice(), expected.encode_to_vec());
            prop_assert!(bytes.as_slice().starts_with(BatchBytes::new(Seq(first), &records).as_slice()));
            let mut written = EncodedRecords::with_capacity(0);
            records.iter().for_each(|record| written.push_record(record));
            prop_assert_eq!(written.decode(), records);
        }
    }
}
