//! Writes a protobuf message field by field, without making the message first: there are millions of these.

use prost::encoding::{WireType, encode_key, encode_varint};

/// The fields of a message, in the order of their numbers. What has its default value is left out, as protobuf does.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<u8>);

/// A key and a length have so many bytes at most: a tag below 2,048, and less than 256 MiB.
const ROOM: usize = 6;

impl Fields {
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

    /// Begins a message that will be the one field of another, with room before it for what that needs.
    pub(super) fn inner(bytes: usize) -> Fields {
        let mut room = Vec::with_capacity(ROOM + bytes);
        room.resize(ROOM, 0);
        Fields(room)
    }

    /// What [`Self::inner`] began, as the one field of another message.
    pub(super) fn within(mut self, tag: u32) -> Vec<u8> {
        let length = (self.0.len() - ROOM) as u64;
        let mut head = [0; ROOM];
        let mut free = &mut head[..];
        encode_key(tag, WireType::LengthDelimited, &mut free);
        encode_varint(length, &mut free);
        let unused = free.len();
        self.0[unused..ROOM].copy_from_slice(&head[..ROOM - unused]);
        self.0.drain(..unused);
        self.0
    }

    fn put(&mut self, tag: u32, bytes: &[u8]) {
        encode_key(tag, WireType::LengthDelimited, &mut self.0);
        encode_varint(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
    }
}
