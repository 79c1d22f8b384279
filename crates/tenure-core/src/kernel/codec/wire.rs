//! Writes a protobuf message field by field, without making the message first: there are millions of these.

use prost::encoding::{WireType, encode_key, encode_varint};

/// The fields of a message, in the order of their numbers. What has its default value is left out, as protobuf does.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<u8>);

impl Fields {
    pub(super) fn with_capacity(bytes: usize) -> Fields {
        Fields(Vec::with_capacity(bytes))
    }

    pub(super) fn text(self, tag: u32, text: &str) -> Fields {
        self.bytes(tag, text.as_bytes())
    }

    pub(super) fn bytes(mut self, tag: u32, bytes: &[u8]) -> Fields {
        if !bytes.is_empty() {
            self.put(tag, bytes);
        }
        self
    }

    pub(super) fn number(mut self, tag: u32, number: u64) -> Fields {
        if number != 0 {
            encode_key(tag, WireType::Varint, &mut self.0);
            encode_varint(number, &mut self.0);
        }
        self
    }

    /// A message that is there, even if nothing is in it.
    pub(super) fn message(mut self, tag: u32, message: &Fields) -> Fields {
        self.put(tag, &message.0);
        self
    }

    /// The message alone, as the one field of another.
    pub(super) fn within(self, tag: u32) -> Vec<u8> {
        // A key and a length have six bytes at most here.
        Fields::with_capacity(self.0.len() + 6).message(tag, &self).0
    }

    fn put(&mut self, tag: u32, bytes: &[u8]) {
        encode_key(tag, WireType::LengthDelimited, &mut self.0);
        encode_varint(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
    }
}
