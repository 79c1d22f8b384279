//! Writes protobuf messages field by field, straight to where they will be stored: there are millions of these, and a
//! message that is made first takes longer than writing it.

use prost::Message;

/// Adds the fields of a message behind some bytes, in the order of their numbers. What has its default value is left
/// out, as protobuf does.
#[derive(Debug)]
pub struct ProtobufWriter<'a>(&'a mut Vec<u8>);

/// How protobuf says what follows a key.
const VARINT: u32 = 0;
const LENGTH_DELIMITED: u32 = 2;

/// So many bytes are kept free for the length of a message before it is known: right for 128 to 16,383 bytes, as a grant
/// has. Of another length, what stands behind has to move.
const USUAL_LENGTH: usize = 2;

impl<'a> ProtobufWriter<'a> {
    /// What is added stands behind `bytes`.
    pub fn append_to(bytes: &'a mut Vec<u8>) -> Self {
        ProtobufWriter(bytes)
    }

    pub fn text(&mut self, tag: u32, text: &str) -> &mut Self {
        self.bytes(tag, text.as_bytes())
    }

    pub fn bytes(&mut self, tag: u32, bytes: &[u8]) -> &mut Self {
        if !bytes.is_empty() {
            self.key(tag, LENGTH_DELIMITED);
            self.varint(bytes.len() as u64);
            self.0.extend_from_slice(bytes);
        }
        self
    }

    pub fn number(&mut self, tag: u32, number: u64) -> &mut Self {
        if number != 0 {
            self.key(tag, VARINT);
            self.varint(number);
        }
        self
    }

    /// A message that is there, even if nothing is in it.
    pub fn message(&mut self, tag: u32, write: impl FnOnce(&mut Self)) -> &mut Self {
        self.key(tag, LENGTH_DELIMITED);
        let start = self.0.len();
        self.0.extend_from_slice(&[0; USUAL_LENGTH]);
        write(self);
        let length = self.0.len() - start - USUAL_LENGTH;
        let [low, high, ..] = (length << 1).to_le_bytes();
        match length {
            // Its seven lowest bits, and a mark that more follow; then the rest.
            0x80..0x4000 => self.0[start..start + USUAL_LENGTH].copy_from_slice(&[low >> 1 | 0x80, high]),
            0..0x80 => {
                self.0[start] = low >> 1;
                self.0.remove(start + 1);
            }
            _ => {
                let mut varint = Vec::new();
                ProtobufWriter(&mut varint).varint(length as u64);
                self.0.splice(start..start + USUAL_LENGTH, varint);
            }
        }
        self
    }

    /// All fields of a message that was made, for what there are few of.
    pub fn append_message(&mut self, message: &impl Message) {
        message.encode(self.0).expect("a vector grows as needed");
    }

    fn key(&mut self, tag: u32, kind: u32) {
        self.varint((tag << 3 | kind).into());
    }

    /// A number in groups of seven bits, the lowest first, each but the last with a mark that more follow.
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::encoding::{WireType, encode_key, encode_varint};

    use super::*;

    fn expected(tag: u32, bytes: &[u8]) -> Vec<u8> {
        let mut expected = Vec::new();
        encode_key(tag, WireType::LengthDelimited, &mut expected);
        encode_varint(bytes.len() as u64, &mut expected);
        expected.extend_from_slice(bytes);
        expected
    }

    #[test]
    fn nested_messages_of_any_length_are_length_prefixed() {
        for length in [0, 1, 125, 127, 128, 129, 16_383, 16_384, 2_097_152] {
            let payload = vec![7; length];
            let mut written = b"before".to_vec();
            ProtobufWriter::append_to(&mut written).message(3, |fields| fields.0.extend_from_slice(&payload));
            assert_eq!(written, [b"before".as_slice(), &expected(3, &payload)].concat(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn fields_match_the_prost_encoding(
            tag in 1_u32..4_000, number in any::<u64>(), bits in 0_u32..64, bytes in proptest::collection::vec(any::<u8>(), 1..300),
        ) {
            let number = number >> bits;
            let mut written = Vec::new();
            ProtobufWriter::append_to(&mut written).number(tag, number).bytes(tag, &bytes).number(tag, 0).text(tag, "");
            let mut all = Vec::new();
            if number != 0 {
                encode_key(tag, WireType::Varint, &mut all);
                encode_varint(number, &mut all);
            }
            all.extend(expected(tag, &bytes));
            prop_assert_eq!(written, all);
        }
    }
}
