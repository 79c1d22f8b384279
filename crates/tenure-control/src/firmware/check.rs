//! Looks at an image while it comes in, in pieces of any size.

use sha2::{Digest as _, Sha256};

use super::description::{DESCRIPTION_BYTES, Description};
use super::{Flaw, Image, MOST_BYTES, MOST_SEGMENTS};

const MAGIC: u8 = 0xE9;
const CHECKSUM_SEED: u8 = 0xEF;
const HEADER_BYTES: usize = 24;
const SEGMENT_HEADER_BYTES: usize = 8;
const DIGEST_BYTES: usize = 32;
/// The checksum is the last byte of a block of this length.
const BLOCK: u32 = 16;

/// Which part of an image comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
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
    Over,
}

impl Part {
    /// How many bytes must be there at once before anything can be said of it.
    const fn gathers(self) -> usize {
        match self {
            Self::Header => HEADER_BYTES,
            Self::SegmentHeader => SEGMENT_HEADER_BYTES,
            Self::Description(_) => DESCRIPTION_BYTES,
            Self::Digest => DIGEST_BYTES,
            Self::Segment(_) | Self::Padding(_) | Self::Checksum | Self::Over => 0,
        }
    }
}

/// Looks at an image while it comes in. After a flaw it says that flaw whatever comes.
///
/// ```
/// use tenure_control::firmware::{Check, Flaw};
/// let mut check = Check::default();
/// assert_eq!(check.feed(b"PK\x03\x04"), Err(Flaw::Magic));
/// assert_eq!(check.finish(), Err(Flaw::Magic));
/// ```
#[derive(Clone)]
pub struct Check {
    part: Part,
    flaw: Option<Flaw>,
    taken: u32,
    gathered: [u8; DESCRIPTION_BYTES],
    filled: usize,
    segments: u8,
    segments_left: u8,
    chip: u16,
    has_digest: bool,
    checksum: u8,
    hash: Sha256,
    description: Option<Description>,
}

impl Default for Check {
    fn default() -> Self {
        Self {
            part: Part::Header,
            flaw: None,
            taken: 0,
            gathered: [0; DESCRIPTION_BYTES],
            filled: 0,
            segments: 0,
            segments_left: 0,
            chip: 0,
            has_digest: false,
            checksum: CHECKSUM_SEED,
            hash: Sha256::new(),
            description: None,
        }
    }
}

impl Check {
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes were looked at.
    pub const fn taken(&self) -> u32 {
        self.taken
    }

    pub fn feed(&mut self, mut piece: &[u8]) -> Result<(), Flaw> {
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
    pub fn finish(self) -> Result<Image, Flaw> {
        if let Some(flaw) = self.flaw {
            return Err(flaw);
        }
        let (Part::Over, Some(description)) = (self.part, self.description) else {
            return Err(Flaw::Truncated);
        };
        Ok(Image {
            version: description.version,
            project: description.project,
            built: description.built,
            chip: self.chip,
            size: self.taken,
            segments: self.segments,
            sha256: hex::encode(self.hash.finalize()),
            has_digest: self.has_digest,
        })
    }

    /// Looks at some of what has come, at least a byte, and says at how much.
    fn step(&mut self, piece: &[u8]) -> Result<usize, Flaw> {
        let room = usize::try_from(MOST_BYTES - self.taken).unwrap_or(0);
        let piece = &piece[..piece.len().min(room)];
        if piece.is_empty() {
            return Err(Flaw::TooLarge);
        }
        let looked_at = match self.part {
            Part::Over => return Err(Flaw::Trailing),
            Part::Segment(left) => piece.len().min(usize::try_from(left).unwrap_or(usize::MAX)),
            Part::Padding(_) | Part::Checksum => 1,
            part => piece.len().min(part.gathers() - self.filled),
        };
        let piece = &piece[..looked_at];
        self.taken += count(looked_at);
        match self.part {
            Part::Segment(left) => {
                self.data(piece);
                self.after_data(left - count(looked_at));
            }
            Part::Padding(left) => {
                if piece != [0] {
                    return Err(Flaw::Padding);
                }
                self.hash.update(piece);
                self.part = if left > 1 { Part::Padding(left - 1) } else { Part::Checksum };
            }
            Part::Checksum => {
                if piece != [self.checksum] {
                    return Err(Flaw::Checksum);
                }
                self.hash.update(piece);
                self.part = if self.has_digest { Part::Digest } else { Part::Over };
            }
            part => self.gather(part, piece)?,
        }
        Ok(looked_at)
    }

    /// Puts aside what can only be judged as a whole.
    fn gather(&mut self, part: Part, piece: &[u8]) -> Result<(), Flaw> {
        self.gathered[self.filled..self.filled + piece.len()].copy_from_slice(piece);
        self.filled += piece.len();
        // The first byte says whether the rest is worth waiting for.
        if part == Part::Header && self.gathered[0] != MAGIC {
            return Err(Flaw::Magic);
        }
        if self.filled < part.gathers() {
            return Ok(());
        }
        self.filled = 0;
        self.gathered_all(part)
    }

    /// A part that was waited for is there.
    fn gathered_all(&mut self, part: Part) -> Result<(), Flaw> {
        let gathered = self.gathered;
        let wanted = &gathered[..part.gathers()];
        match part {
            Part::Header => {
                self.hash.update(wanted);
                self.header(&gathered)
            }
            Part::SegmentHeader => {
                self.hash.update(wanted);
                let length = u32::from_le_bytes([gathered[4], gathered[5], gathered[6], gathered[7]]);
                self.segment(length)
            }
            Part::Description(behind) => {
                self.data(wanted);
                self.description = Some(Description::read(&gathered)?);
                self.after_data(behind);
                Ok(())
            }
            _ => {
                if wanted != self.hash.clone().finalize().as_slice() {
                    return Err(Flaw::Digest);
                }
                self.part = Part::Over;
                Ok(())
            }
        }
    }

    fn header(&mut self, header: &[u8; DESCRIPTION_BYTES]) -> Result<(), Flaw> {
        let segments = header[1];
        if !(1..=MOST_SEGMENTS).contains(&segments) {
            return Err(Flaw::SegmentCount);
        }
        self.has_digest = match header[HEADER_BYTES - 1] {
            0 => false,
            1 => true,
            _ => return Err(Flaw::DigestMark),
        };
        (self.segments, self.segments_left) = (segments, segments);
        self.chip = u16::from_le_bytes([header[12], header[13]]);
        self.part = Part::SegmentHeader;
        Ok(())
    }

    fn segment(&mut self, length: u32) -> Result<(), Flaw> {
        if length > MOST_BYTES - self.taken {
            return Err(Flaw::SegmentTooLong);
        }
        if !length.is_multiple_of(4) {
            return Err(Flaw::SegmentLength);
        }
        self.segments_left -= 1;
        if self.description.is_some() {
            self.after_data(length);
            return Ok(());
        }
        let behind = length.checked_sub(count(DESCRIPTION_BYTES)).ok_or(Flaw::NotAnApplication)?;
        self.part = Part::Description(behind);
        Ok(())
    }

    /// Bytes of a segment, which the checksum is about.
    fn data(&mut self, data: &[u8]) {
        self.hash.update(data);
        self.checksum = data.iter().fold(self.checksum, |sum, byte| sum ^ byte);
    }

    /// What comes when so many bytes of a segment are left.
    fn after_data(&mut self, left: u32) {
        let padding = BLOCK - 1 - self.taken % BLOCK;
        self.part = match (left, self.segments_left, padding) {
            (1.., _, _) => Part::Segment(left),
            (0, 1.., _) => Part::SegmentHeader,
            (0, 0, 0) => Part::Checksum,
            (0, 0, 1..) => Part::Padding(padding),
        };
    }
}

/// A length that is known to be small.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
