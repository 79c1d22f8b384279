//! One batch on the disk.
//!
//! ```text
//! ┌─────────┬─────────────┬──────────────┬──────────┬─────────┐
//! │ length  │ content sum │ head sum     │ hash     │ content │
//! │ 4       │ 4           │ 4            │ 32       │ length  │
//! └─────────┴─────────────┴──────────────┴──────────┴─────────┘
//! ```
//!
//! The head has a sum of its own, so that a length can be believed before the content is looked at: a flipped
//! bit in the length must not make an acknowledged record look like one that was cut short.

use super::sector::{
    self, SECTOR, SectorMarker, SectorState, classify_sector, join_sectors, sector_count, split_into_sectors,
};
use crate::batch::{ChainHash, chain_hash};

const HEADER_LENGTH: usize = 44;

/// What stands at a place in a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RecordScan {
    /// A whole record of this many sectors.
    Record { content: Vec<u8>, hash: ChainHash, sectors: usize },
    /// A record of which some sectors were never written.
    Torn { sectors: usize },
    /// Nothing was written here.
    Blank,
    /// Something that cannot be.
    Damaged(&'static str),
}

/// The sectors of a record with this content, after a record with the hash `previous`.
pub(crate) fn encode(content: &[u8], previous: ChainHash) -> Option<(Vec<u8>, ChainHash)> {
    let length = u32::try_from(content.len()).ok()?.to_be_bytes();
    let hash = chain_hash(previous, content);
    let sum = crc32c::crc32c(content).to_be_bytes();
    let mut head = Vec::with_capacity(HEADER_LENGTH);
    head.extend(length);
    head.extend(sum);
    head.extend(head_sum(length, sum, hash).to_be_bytes());
    head.extend(hash.0);
    Some((split_into_sectors(&head, content, SectorMarker::First), hash))
}

/// What stands at the beginning of `bytes`, which end with the segment.
pub(crate) fn scan(bytes: &[u8], previous: ChainHash) -> RecordScan {
    let Some(first) = bytes.get(..SECTOR) else { return RecordScan::Blank };
    match classify_sector(first) {
        SectorState::Blank => return RecordScan::Blank,
        SectorState::Written(SectorMarker::First) => {}
        SectorState::Written(SectorMarker::Segment) => {
            return RecordScan::Damaged("a segment begins inside of a segment");
        }
        SectorState::Written(SectorMarker::Next) => {
            return RecordScan::Damaged("the rest of a record has no beginning");
        }
        SectorState::Garbage => return RecordScan::Damaged("a sector was overwritten"),
    }
    let Some(head) = RecordHeader::parse(&first[1..]) else {
        return RecordScan::Damaged("the head of a record has a wrong sum");
    };
    let sectors = sector_count(HEADER_LENGTH + head.length);
    let Some(whole) = bytes.get(..sectors * SECTOR) else {
        return RecordScan::Damaged("a record is longer than its segment");
    };
    let rest = whole.chunks(SECTOR).skip(1).map(classify_sector);
    if rest.clone().any(|sector| sector == SectorState::Blank) {
        return RecordScan::Torn { sectors };
    }
    if rest.into_iter().any(|sector| sector != SectorState::Written(SectorMarker::Next)) {
        return RecordScan::Damaged("a sector of a record was overwritten");
    }
    let gathered = join_sectors(whole);
    let (content, padding) = gathered[HEADER_LENGTH..].split_at(head.length);
    if padding.iter().any(|byte| *byte != 0) {
        return RecordScan::Damaged("something stands behind the content of a record");
    }
    if crc32c::crc32c(content) != head.content_sum {
        return RecordScan::Damaged("the content of a record has a wrong sum");
    }
    if chain_hash(previous, content) != head.hash {
        return RecordScan::Damaged("a record does not follow from the one before");
    }
    RecordScan::Record { content: content.to_vec(), hash: head.hash, sectors }
}

struct RecordHeader {
    length: usize,
    content_sum: u32,
    hash: ChainHash,
}

impl RecordHeader {
    fn parse(bytes: &[u8]) -> Option<RecordHeader> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (sum, rest) = rest.split_first_chunk::<4>()?;
        let (own_sum, rest) = rest.split_first_chunk::<4>()?;
        let (hash, _) = rest.split_first_chunk::<32>()?;
        let hash = ChainHash(*hash);
        let believed = u32::from_be_bytes(*own_sum) == head_sum(*length, *sum, hash);
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        believed.then_some(RecordHeader { length, content_sum: u32::from_be_bytes(*sum), hash })
    }
}

fn head_sum(length: [u8; 4], content_sum: [u8; 4], hash: ChainHash) -> u32 {
    let sum = crc32c::crc32c(&length);
    let sum = crc32c::crc32c_append(sum, &content_sum);
    crc32c::crc32c_append(sum, &hash.0)
}

const _: () = assert!(HEADER_LENGTH <= sector::PAYLOAD, "the head of a record is in its first sector");
