//! Firmware: an application image for an ESP32, checked while it comes in.
//!
//! ```text
//!  0   1  0xE9
//!  1   1  how many segments, 1 to 16
//!  2   2  how the flash is wired; nothing is made of it here
//!  4   4  where the program begins
//!  8   4  pins and their drive
//! 12   2  for which chip
//! 14   9  revisions of the chip, and reserved
//! 23   1  1 if a digest stands at the end, else 0
//! 24      the segments: address (4), length (4), and that many bytes; the length is a multiple of 4
//!         zeros, so that the next byte is the last of sixteen
//!      1  0xEF and every byte of all segments, exclusive-or
//!     32  SHA-256 of everything before, if the header says so
//! ```
//!
//! The first segment begins with a description of the application: 256 bytes with its version and its name. Numbers are
//! little-endian. Nothing of an image is kept but what it says of itself, so checking one takes the same little memory
//! whatever its size.

mod image_checker;

use std::fmt;

pub use image_checker::ImageChecker;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure_control::problem::{Problem, ProblemCode};

/// How many bytes an image has at most.
pub const MAX_IMAGE_BYTES: u32 = 4 << 20;
/// How many segments there are at most.
pub const MAX_SEGMENTS: u8 = 16;

/// What is kept of an image that was found to be whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FirmwareInfo {
    /// Its version, as it says itself.
    pub version: String,
    /// Which project it was built from.
    pub project: String,
    /// When it was built, as it says itself.
    pub built: String,
    /// For which chip, by the number that its maker gave it.
    pub chip: u16,
    /// How many bytes it has.
    pub size: u32,
    pub segments: u8,
    /// SHA-256 of all that stands before its own digest, in hexadecimal digits.
    pub sha256: String,
    pub has_digest: bool,
}

impl FirmwareInfo {
    /// What runs on a device that was never given another one.
    pub fn built_in() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            project: "tenure-light".to_owned(),
            built: String::new(),
            chip: 0,
            size: 0,
            segments: 0,
            sha256: String::new(),
            has_digest: false,
        }
    }

    pub fn to_json(&self) -> Value {
        json!({
            "version": self.version,
            "project": self.project,
            "built": self.built,
            "chip": self.chip,
            "size": self.size,
            "segments": self.segments,
            "sha256": self.sha256,
            "hasDigest": self.has_digest,
        })
    }
}

/// Why bytes are no image that a device would start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirmwareImageError {
    /// It is longer than the place for it.
    TooLarge,
    /// It does not begin as images do.
    Magic,
    /// It has no segment, or more than there can be.
    SegmentCount,
    /// The header says neither that there is a digest nor that there is none.
    DigestFlag,
    /// A segment does not fit into what an image can be.
    SegmentTooLong,
    /// A segment's length is no multiple of 4.
    SegmentLength,
    /// The first segment does not say what this is: not an application.
    NotAnApplication,
    /// What it says of itself is not text.
    Description,
    /// What stands between the last segment and the checksum is not zero.
    Padding,
    /// A byte of a segment is not as it was built.
    Checksum,
    /// A byte is not as it was built.
    Digest,
    /// It goes on after its end.
    Trailing,
    Truncated,
}

impl FirmwareImageError {
    const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "It is larger than 4 MiB, the place that there is for it",
            Self::Magic => {
                "It does not begin with the byte 0xE9, so it is no ESP32 image; send the .bin file of the build"
            }
            Self::SegmentCount => "Its header must say 1 to 16 segments",
            Self::DigestFlag => {
                "Its header must say 0 or 1 at offset 23, for whether a digest stands at the end"
            }
            Self::SegmentTooLong => "A segment is longer than an image can be; the file is damaged",
            Self::SegmentLength => "The length of a segment is no multiple of 4; the file is damaged",
            Self::NotAnApplication => {
                "Its first segment does not begin with the description of an application; a bootloader or a partition \
                 table is sent in another way"
            }
            Self::Description => {
                "Its description has no version, or a text that is none; the file is damaged"
            }
            Self::Padding => {
                "Between the last segment and the checksum stands something else than zeros; the file is damaged"
            }
            Self::Checksum => "Its checksum does not fit its segments; send the file again",
            Self::Digest => "Its SHA-256 does not fit its bytes; send the file again",
            Self::Trailing => "It goes on after its end; send the application's image alone, unsigned",
            Self::Truncated => "It ends before its end; send the whole file",
        }
    }
}

impl fmt::Display for FirmwareImageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl std::error::Error for FirmwareImageError {}

impl From<FirmwareImageError> for Problem {
    fn from(flaw: FirmwareImageError) -> Self {
        let code = match flaw {
            FirmwareImageError::TooLarge => ProblemCode::TooLarge,
            _ => ProblemCode::FirmwareInvalid,
        };
        Self::new(code, format!("This firmware cannot be taken. {flaw}"))
    }
}

pub const DESCRIPTION_BYTES: usize = 256;

const MAGIC: [u8; 4] = 0xABCD_5432_u32.to_le_bytes();

/// What an application says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppDescriptor {
    pub version: String,
    /// Which project it was built from.
    pub project: String,
    /// Day and time of the build.
    pub built: String,
}

impl AppDescriptor {
    /// Reads it. Behind the magic number and three numbers of no interest here stand texts of fixed length, each up to its
    /// first zero: version (32), project (32), time (16), date (16).
    pub fn parse(bytes: &[u8; DESCRIPTION_BYTES]) -> Result<Self, FirmwareImageError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(FirmwareImageError::NotAnApplication);
        }
        let [version, project, time, date] =
            [16..48, 48..80, 80..96, 96..112].map(|place: std::ops::Range<usize>| text(&bytes[place]));
        let (version, built) = (version?, format!("{} {}", date?, time?));
        if version.is_empty() {
            return Err(FirmwareImageError::Description);
        }
        Ok(Self { version, project: project?, built: built.trim().to_owned() })
    }
}

/// A text up to its first zero. It is shown to people, so it must be one.
fn text(bytes: &[u8]) -> Result<String, FirmwareImageError> {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| FirmwareImageError::Description)?;
    if text.chars().any(char::is_control) {
        Err(FirmwareImageError::Description)
    } else {
        Ok(text.to_owned())
    }
}
