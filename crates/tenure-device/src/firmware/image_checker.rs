//! Looks at an image while it comes in, in pieces of any size.

use sha2::{Digest as _, Sha256};

use super::{
    AppDescriptor, DESCRIPTION_BYTES, FirmwareImageError, FirmwareInfo, MAX_IMAGE_BYTES, MAX_SEGMENTS,
};

const MAGIC: u8 = 0xE9;
const CHECKSUM_SEED: u8 = 0xEF;
const HEADER_BYTES: usize = 24;
const SEGMENT_HEADER_BYTES: usize = 8;
const DIGEST_BYTES: usize = 32;
/// The checksum is the last byte of a block of this length.
const BLOCK: u32 = 16;

/// Which part of an image comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImagePart {
    Header,
    SegmentHeader,
    /// So many bytes of a segment are to come.
    Segment(u32),
    /// The description at the beginning of the first segment, and how long that segment is behind it.
    Description(u32),
    /// So many zeros are to come.
    Padding(u32),
    Checksum,
    Digest,
    End,
}

impl ImagePart {
    /// How many bytes must be there at once before anything can be said of it.
    const fn buffered_bytes(self) -> usize {
        match self {
            Self::Header => HEADER_BYTES,
            Self::SegmentHeader => SEGMENT_HEADER_BYTES,
            Self::Description(_) => DESCRIPTION_BYTES,
            Self::Digest => DIGEST_BYTES,
            Self::Segment(_) | Self::Padding(_) | Self::Checksum | Self::End => 0,
        }
    }
}

/// Looks at an image while it comes in. After a flaw it says that flaw whatever comes.
///
/// ```
/// use tenure_device::firmware::{ImageChecker, FirmwareImageError};
/// let mut check = ImageChecker::default();
/// assert_eq!(check.feed(b"PK\x03\x04"), Err(FirmwareImageError::Magic));
/// assert_eq!(check.finish(), Err(FirmwareImageError::Magic));
/// ```
#[derive(Clone)]
pub struct ImageChecker {
    part: ImagePart,
    flaw: Option<FirmwareImageError>,
    bytes_checked: u32,
    gathered: [u8; DESCRIPTION_BYTES],
    filled: usize,
    segments: u8,
    segments_remaining: u8,
    chip: u16,
    has_digest: bool,
    checksum: u8,
    hash: Sha256,
    description: Option<AppDescriptor>,
}

impl Default for ImageChecker {
    fn default() -> Self {
        Self {
            part: ImagePart::Header,
            flaw: None,
            bytes_checked: 0,
            gathered: [0; DESCRIPTION_BYTES],
            filled: 0,
            segments: 0,
            segments_remaining: 0,
            chip: 0,
            has_digest: false,
            checksum: CHECKSUM_SEED,
            hash: Sha256::new(),
            description: None,
        }
    }
}

impl ImageChecker {
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes were looked at.
    pub const fn bytes_checked(&self) -> u32 {
        self.bytes_checked
    }

    pub fn feed(&mut self, mut piece: &[u8]) -> Result<(), FirmwareImageError> {
        while !piece.is_empty() {
            if let Some(flaw) = self.flaw {
                return Err(flaw);
            }
            match self.step(piece) {
                Ok(looked_at) => piece = &piece[looked_at..],
                Err(flaw) => self.flaw = Some(flaw),
            }
        }
        self.flaw.map_or(Ok(()), Err)
    }

    /// There is no more: what it was.
    pub fn finish(self) -> Result<FirmwareInfo, FirmwareImageError> {
        if let Some(flaw) = self.flaw {
            return Err(flaw);
        }
        let (ImagePart::End, Some(description)) = (self.part, self.description) else {
            return Err(FirmwareImageError::Truncated);
        };
        Ok(FirmwareInfo {
            version: description.version,
            project: description.project,
            built: description.built,
            chip: self.chip,
            size: self.bytes_checked,
            segments: self.segments,
            sha256: hex::encode(self.hash.finalize()),
            has_digest: self.has_digest,
        })
    }

    /// Looks at some of what has come, at least a byte, and says at how much.
    fn step(&mut self, piece: &[u8]) -> Result<usize, FirmwareImageError> {
        let available = usize::try_from(MAX_IMAGE_BYTES - self.bytes_checked).unwrap_or(0);
        let piece = &piece[..piece.len().min(available)];
        if piece.is_empty() {
            return Err(FirmwareImageError::TooLarge);
        }
        let looked_at = match self.part {
            ImagePart::End => return Err(FirmwareImageError::Trailing),
            ImagePart::Segment(remaining) => {
                piece.len().min(usize::try_from(remaining).unwrap_or(usize::MAX))
            }
            ImagePart::Padding(_) | ImagePart::Checksum => 1,
            part => piece.len().min(part.buffered_bytes() - self.filled),
        };
        let piece = &piece[..looked_at];
        self.bytes_checked += count(looked_at);
        match self.part {
            ImagePart::Segment(remaining) => {
                self.data(piece);
                self.after_data(remaining - count(looked_at));
            }
            ImagePart::Padding(remaining) => {
                if piece != [0] {
                    return Err(FirmwareImageError::Padding);
                }
                self.hash.update(piece);
                self.part =
                    if remaining > 1 { ImagePart::Padding(remaining - 1) } else { ImagePart::Checksum };
            }
            ImagePart::Checksum => {
                if piece != [self.checksum] {
                    return Err(FirmwareImageError::Checksum);
                }
                self.hash.update(piece);
                self.part = if self.has_digest { ImagePart::Digest } else { ImagePart::End };
            }
            part => self.gather(part, piece)?,
        }
        Ok(looked_at)
    }

    /// Puts aside what can only be judged as a whole.
    fn gather(&mut self, part: ImagePart, piece: &[u8]) -> Result<(), FirmwareImageError> {
        self.gathered[self.filled..self.filled + piece.len()].copy_from_slice(piece);
        self.filled += piece.len();
        // The first byte says whether the rest is worth waiting for.
        if part == ImagePart::Header && self.gathered[0] != MAGIC {
            return Err(FirmwareImageError::Magic);
        }
        if self.filled < part.buffered_bytes() {
            return Ok(());
        }
        self.filled = 0;
        self.handle_complete_part(part)
    }

    /// A part that was waited for is there.
    fn handle_complete_part(&mut self, part: ImagePart) -> Result<(), FirmwareImageError> {
        let gathered = self.gathered;
        let complete = &gathered[..part.buffered_bytes()];
        match part {
            ImagePart::Header => {
                self.hash.update(complete);
                self.header(&gathered)
            }
            ImagePart::SegmentHeader => {
                self.hash.update(complete);
                let length = u32::from_le_bytes([gathered[4], gathered[5], gathered[6], gathered[7]]);
                self.segment(length)
            }
            ImagePart::Description(behind) => {
                self.data(complete);
                self.description = Some(AppDescriptor::parse(&gathered)?);
                self.after_data(behind);
                Ok(())
            }
            _ => {
                if complete != self.hash.clone().finalize().as_slice() {
                    return Err(FirmwareImageError::Digest);
                }
                self.part = ImagePart::End;
                Ok(())
            }
        }
    }

    fn header(&mut self, header: &[u8; DESCRIPTION_BYTES]) -> Result<(), FirmwareImageError> {
        let segments = header[1];
        if !(1..=MAX_SEGMENTS).contains(&segments) {
            return Err(FirmwareImageError::SegmentCount);
        }
        self.has_digest = match header[HEADER_BYTES - 1] {
            0 => false,
            1 => true,
            _ => return Err(FirmwareImageError::DigestFlag),
        };
        (self.segments, self.segments_remaining) = (segments, segments);
        self.chip = u16::from_le_bytes([header[12], header[13]]);
        self.part = ImagePart::SegmentHeader;
        Ok(())
    }

    fn segment(&mut self, length: u32) -> Result<(), FirmwareImageError> {
        if length > MAX_IMAGE_BYTES - self.bytes_checked {
            return Err(FirmwareImageError::SegmentTooLong);
        }
        if !length.is_multiple_of(4) {
            return Err(FirmwareImageError::SegmentLength);
        }
        self.segments_remaining -= 1;
        if self.description.is_some() {
            self.after_data(length);
            return Ok(());
        }
        let behind =
            length.checked_sub(count(DESCRIPTION_BYTES)).ok_or(FirmwareImageError::NotAnApplication)?;
        self.part = ImagePart::Description(behind);
        Ok(())
    }

    /// Bytes of a segment, which the checksum is about.
    fn data(&mut self, data: &[u8]) {
        self.hash.update(data);
        self.checksum = data.iter().fold(self.checksum, |sum, byte| sum ^ byte);
    }

    /// What comes when so many bytes of a segment are left.
    fn after_data(&mut self, remaining: u32) {
        let padding = BLOCK - 1 - self.bytes_checked % BLOCK;
        self.part = match (remaining, self.segments_remaining, padding) {
            (1.., _, _) => ImagePart::Segment(remaining),
            (0, 1.., _) => ImagePart::SegmentHeader,
            (0, 0, 0) => ImagePart::Checksum,
            (0, 0, 1..) => ImagePart::Padding(padding),
        };
    }
}

/// A length that is known to be small.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
