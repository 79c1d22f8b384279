//! One file of the ledger: a head, then records, then blank sectors up to its full size.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use super::disk::Disk;
use super::record;
use super::record::{
    RecordScan, SECTOR, SectorMarker, SectorState, classify_sector, join_sectors, split_into_sectors,
};
use crate::batch::{Batch, ChainHash};
use crate::error::{Damage, OpenError};
use crate::ledger::{Head, LedgerId, Seq};

/// What the first sector of a segment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) ledger: LedgerId,
    pub(crate) epoch: u64,
    pub(crate) number: u64,
    /// Where the ledger ended when this segment began.
    pub(crate) after: Head,
    /// How large the file is. It is made this large at once, and never changes.
    pub(crate) size: u64,
}

const MAGIC: &[u8; 8] = b"tenure-1";
const HEADER_LENGTH: usize = 8 + 16 + 8 + 8 + 8 + 32 + 8 + 4;

impl SegmentHeader {
    /// The first sector.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LENGTH);
        bytes.extend(MAGIC);
        bytes.extend(self.ledger.0);
        bytes.extend(self.epoch.to_be_bytes());
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.after.seq.0.to_be_bytes());
        bytes.extend(self.after.hash.0);
        bytes.extend(self.size.to_be_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_be_bytes());
        split_into_sectors(&bytes, &[], SectorMarker::Segment)
    }

    /// What a first sector says; the reason if it says nothing that can be believed.
    pub(crate) fn parse(sector: &[u8]) -> Result<SegmentHeader, &'static str> {
        if sector.len() != SECTOR || classify_sector(sector) != SectorState::Written(SectorMarker::Segment) {
            return Err("the file does not begin like a segment");
        }
        let bytes = join_sectors(sector);
        let (head, padding) = bytes.split_at(HEADER_LENGTH);
        let (head, sum) = head.split_at(HEADER_LENGTH - 4);
        if padding.iter().any(|byte| *byte != 0) {
            return Err("something stands behind the head of the segment");
        }
        if crc32c::crc32c(head).to_be_bytes() != sum {
            return Err("the head of the segment has a wrong sum");
        }
        let (name, rest) = head.split_first_chunk::<8>().ok_or("the head of the segment is cut")?;
        if name != MAGIC {
            return Err("the segment was written by another version");
        }
        parse_fields(rest).ok_or("the head of the segment is cut")
    }
}

fn parse_fields(bytes: &[u8]) -> Option<SegmentHeader> {
    let (ledger, rest) = bytes.split_first_chunk::<16>()?;
    let (epoch, rest) = rest.split_first_chunk::<8>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (seq, rest) = rest.split_first_chunk::<8>()?;
    let (hash, rest) = rest.split_first_chunk::<32>()?;
    let (size, _) = rest.split_first_chunk::<8>()?;
    Some(SegmentHeader {
        ledger: LedgerId(*ledger),
        epoch: u64::from_be_bytes(*epoch),
        number: u64::from_be_bytes(*number),
        after: Head { seq: Seq(u64::from_be_bytes(*seq)), hash: ChainHash(*hash) },
        size: u64::from_be_bytes(*size),
    })
}

/// Everything in one segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) header: SegmentHeader,
    pub(crate) batches: Vec<Batch>,
    /// Where each of them begins.
    pub(crate) offsets: Vec<u64>,
    /// Where the ledger ended before the last record of this segment.
    pub(crate) before_last: Head,
    /// Where the ledger ends after this segment.
    pub(crate) last: Head,
    /// Where the last whole record ends.
    pub(crate) end: u64,
    /// A write after that was cut short.
    pub(crate) is_torn: bool,
    /// The bytes of the last batch, as they were written.
    pub(crate) last_content: Option<Vec<u8>>,
}

impl Segment {
    /// The file's name.
    pub(crate) fn file_name(number: u64) -> String {
        format!("{number:016}.segment")
    }

    /// The number in a file's name, if it is that of a segment.
    pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
        let number = name.strip_suffix(".segment")?.parse().ok()?;
        (Segment::file_name(number) == name).then_some(number)
    }

    /// Reads a whole file and checks every bit of it.
    pub(crate) fn read(path: &Path, bytes: &[u8]) -> Result<Segment, Damage> {
        Self::read_until(path, bytes, Seq(u64::MAX))
    }

    /// Reads a file up to the record that holds event `until`, and looks at nothing behind that: somebody may be
    /// writing there.
    pub(crate) fn read_until(path: &Path, bytes: &[u8], until: Seq) -> Result<Segment, Damage> {
        let damage = |offset: usize, after: Seq, reason| Damage {
            file: path.to_owned(),
            offset: offset as u64,
            after,
            reason,
        };
        let first = bytes.get(..SECTOR).ok_or_else(|| damage(0, Seq(0), "the file is cut short"))?;
        let head = SegmentHeader::parse(first).map_err(|reason| damage(0, Seq(0), reason))?;
        if bytes.len() as u64 != head.size {
            return Err(damage(bytes.len(), head.after.seq, "the file does not have its size"));
        }
        let mut segment = Segment {
            path: path.to_owned(),
            header: head,
            batches: Vec::new(),
            offsets: Vec::new(),
            before_last: head.after,
            last: head.after,
            end: SECTOR as u64,
            is_torn: false,
            last_content: None,
        };
        let mut offset = SECTOR;
        loop {
            let before = segment.last;
            if before.seq >= until {
                return Ok(segment);
            }
            match record::scan(&bytes[offset..], before.hash) {
                RecordScan::Record { content, hash, sectors } => {
                    let batch = Batch::decode(Seq(before.seq.0 + 1), &content, hash);
                    let batch = batch.ok_or_else(|| damage(offset, before.seq, "a record is no batch"))?;
                    segment.before_last = before;
                    segment.last = Head { seq: batch.last(), hash };
                    segment.batches.push(batch);
                    segment.offsets.push(offset as u64);
                    offset += sectors * SECTOR;
                    segment.end = offset as u64;
                    segment.last_content = Some(content);
                }
                RecordScan::Torn { sectors } => {
                    segment.is_torn = true;
                    let behind = &bytes[offset + sectors * SECTOR..];
                    if let Some(sector) =
                        behind.chunks(SECTOR).position(|sector| classify_sector(sector) != SectorState::Blank)
                    {
                        let at = offset + (sectors + sector) * SECTOR;
                        return Err(damage(
                            at,
                            before.seq,
                            "something stands behind a record that was cut short",
                        ));
                    }
                    return Ok(segment);
                }
                RecordScan::Blank => {
                    // Of a write that was cut short, the first sector may be what is missing.
                    for (index, sector) in bytes[offset..].chunks(SECTOR).enumerate() {
                        match classify_sector(sector) {
                            SectorState::Blank => {}
                            SectorState::Written(SectorMarker::Next) => segment.is_torn = true,
                            SectorState::Written(_) => {
                                let at = offset + index * SECTOR;
                                return Err(damage(at, before.seq, "a record stands behind a hole"));
                            }
                            SectorState::Garbage => {
                                let at = offset + index * SECTOR;
                                return Err(damage(at, before.seq, "a blank sector was overwritten"));
                            }
                        }
                    }
                    return Ok(segment);
                }
                RecordScan::Damaged(reason) => return Err(damage(offset, before.seq, reason)),
            }
        }
    }
}

/// The segments that were not looked at yet.
pub(crate) enum SegmentReader {
    /// Read when they are asked for.
    Sequential(Arc<dyn Disk>, VecDeque<String>),
    /// Read by another thread, one ahead of who asks; so many are still to come.
    ReadAhead(Receiver<Result<Segment, OpenError>>, usize),
}

impl SegmentReader {
    pub(crate) fn new(disk: Arc<dyn Disk>, names: VecDeque<String>) -> SegmentReader {
        if names.len() < 2 || !disk.supports_concurrent_reads() {
            return SegmentReader::Sequential(disk, names);
        }
        let (sender, receiver) = sync_channel(1);
        let (reader, to_read) = (disk.clone(), names.clone());
        let read_all = move || {
            for name in to_read {
                let read = read_segment(&*reader, &name);
                let is_last = read.is_err();
                // Nobody asks any more, or nothing behind this can be used.
                if sender.send(read).is_err() || is_last {
                    break;
                }
            }
        };
        match std::thread::Builder::new().name("tenure-reader".into()).spawn(read_all) {
            Ok(_) => SegmentReader::ReadAhead(receiver, names.len()),
            Err(_) => SegmentReader::Sequential(disk, names),
        }
    }

    /// The next one; nothing after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Segment>, OpenError> {
        match self {
            SegmentReader::Sequential(disk, names) => {
                names.pop_front().map(|name| read_segment(&**disk, &name)).transpose()
            }
            SegmentReader::ReadAhead(_, 0) => Ok(None),
            SegmentReader::ReadAhead(receiver, remaining) => {
                *remaining -= 1;
                // A reader that is gone is not the end of the ledger.
                let gone = |_| OpenError::Io(io::Error::other("the thread that reads ahead has ended"));
                receiver.recv().map_err(gone)?.map(Some)
            }
        }
    }
}

fn read_segment(disk: &dyn Disk, name: &str) -> Result<Segment, OpenError> {
    let bytes = disk.read(name)?.unwrap_or_default();
    Ok(Segment::read(&disk.path(name), &bytes)?)
}

#[cfg(test)]
mod tests {
    use tenure_core::ledger::EventRecord;

    use super::*;
    use crate::batch::BatchBytes;

    /// A segment of 4 KiB with three records: of one sector, of several, and of one.
    fn segment() -> Vec<u8> {
        let head = SegmentHeader {
            ledger: LedgerId([7; 16]),
            epoch: 1,
            number: 1,
            after: Head::default(),
            size: 4_096,
        };
        let mut bytes = head.encode();
        let mut before = Head::default();
        for count in [1_usize, 20, 1] {
            let records = vec![EventRecord::new("lease.issued", "", "registrar", vec![1; 30]); count];
            let content = BatchBytes::new(Seq(before.seq.0 + 1), &records).with_signature(b"sealed");
            let (sectors, hash) = record::encode(content.as_slice(), before.hash).expect("it fits");
            bytes.extend(sectors);
            before = Head { seq: Seq(before.seq.0 + count as u64), hash };
        }
        bytes.resize(4_096, 0);
        bytes
    }

    #[test]
    fn every_flipped_bit_in_a_segment_is_reported_at_or_before_its_sector() {
        let whole = segment();
        let read = Segment::read(Path::new("whole"), &whole).expect("as it was written");
        assert_eq!((read.batches.len(), read.is_torn), (3, false));
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let damage = Segment::read(Path::new("flipped"), &bytes).expect_err("one bit is another");
            let sector = bit / 8 / SECTOR * SECTOR;
            assert!(damage.offset <= sector as u64, "bit {bit}: {damage}");
        }
    }

    #[test]
    fn a_truncated_segment_is_damage() {
        let whole = segment();
        for length in 0..whole.len() {
            Segment::read(Path::new("cut"), &whole[..length]).expect_err("part of it is missing");
        }
    }
}
