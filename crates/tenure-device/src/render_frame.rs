//! A frame of a render stream, byte for byte.
//!
//! ```text
//!  0  4  the text K1F1
//!  4  1  version, 1
//!  5  1  format, 1: three bytes a light, red, green, blue
//!  6  2  flags
//!  8  4  sequence: one more than the frame before; after 4294967295 comes 0
//! 12  2  how many lights, 320
//! 14  2  reserved, 0
//! 16 960  the colours
//! ```
//!
//! Numbers are little-endian.

use tenure_control::problem::{Problem, ProblemCode};

use crate::light::{COLOUR_BYTES, LEDS, Pixels};

pub const MAGIC: [u8; 4] = *b"K1F1";
pub const VERSION: u8 = 1;
/// Three bytes a light.
pub const FORMAT: u8 = 1;
/// How many bytes stand before the colours.
pub const HEADER_BYTES: usize = 16;
/// How many bytes a frame has.
pub const FRAME_BYTES: usize = HEADER_BYTES + COLOUR_BYTES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderFrame<'a> {
    /// Nothing is made of them in version 1.
    pub flags: u16,
    pub sequence: u32,
    pub colours: &'a Pixels,
}

impl<'a> RenderFrame<'a> {
    /// Reads a frame. What is wrong is said of the first field that is.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Problem> {
        let split = bytes.split_first_chunk::<HEADER_BYTES>();
        let sized = split.and_then(|(header, rest)| Some((header, <&Pixels>::try_from(rest).ok()?)));
        let Some((header, colours)) = sized else {
            let message = format!("must be {FRAME_BYTES} bytes, and is {}", bytes.len());
            return Err(invalid("size", message));
        };
        let [m0, m1, m2, m3, version, format, f0, f1, s0, s1, s2, s3, l0, l1, r0, r1] = *header;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(invalid("magic", "must be the four bytes K1F1, at offset 0"));
        }
        if version != VERSION {
            return Err(invalid("version", format!("must be {VERSION}, at offset 4")));
        }
        if format != FORMAT {
            return Err(invalid(
                "format",
                format!("must be {FORMAT} (RGB, three bytes a light), at offset 5"),
            ));
        }
        if u32::from(u16::from_le_bytes([l0, l1])) != LEDS {
            return Err(invalid("ledCount", format!("must be {LEDS}, little-endian, at offset 12")));
        }
        if [r0, r1] != [0, 0] {
            return Err(invalid("reserved", "must be 0, at offset 14"));
        }
        let (flags, sequence) = (u16::from_le_bytes([f0, f1]), u32::from_le_bytes([s0, s1, s2, s3]));
        Ok(Self { flags, sequence, colours })
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; FRAME_BYTES] {
        let [f0, f1] = self.flags.to_le_bytes();
        let [s0, s1, s2, s3] = self.sequence.to_le_bytes();
        let [l0, l1, ..] = LEDS.to_le_bytes();
        let [m0, m1, m2, m3] = MAGIC;
        let header = [m0, m1, m2, m3, VERSION, FORMAT, f0, f1, s0, s1, s2, s3, l0, l1, 0, 0];
        let mut bytes = [0; FRAME_BYTES];
        bytes[..HEADER_BYTES].copy_from_slice(&header);
        bytes[HEADER_BYTES..].copy_from_slice(self.colours);
        bytes
    }
}

fn invalid(field: &str, message: impl std::fmt::Display) -> Problem {
    Problem::of_field(ProblemCode::StreamFrameInvalid, field, message)
}
