//! Events on their way to the disk.

use prost::Message;
use tenure_core::kernel::{EncodeContext, Event, encode_to};
use tenure_core::ledger::EventRecord;
use tenure_core::proto;
use tenure_core::protobuf_writer::ProtobufWriter;

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
