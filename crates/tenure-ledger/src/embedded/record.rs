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

const _: () = assert!(HEADER_LENGTH <= PAYLOAD, "the head of a record is in its first sector");

/// What a disk writes at once.
pub(crate) const SECTOR: usize = 512;

/// What fits into a sector beside its marker.
pub(crate) const PAYLOAD: usize = SECTOR - 1;

/// What a sector begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SectorMarker {
    /// The beginning of a segment.
    Segment = 0xB6,
    /// The beginning of a record.
    First = 0x5D,
    /// The rest of a record.
    Next = 0xE3,
}

/// What a sector says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectorState {
    /// Nothing was ever written here.
    Blank,
    /// Something was.
    Written(SectorMarker),
    /// This is nothing that is ever written.
    Garbage,
}

/// What the sector says of itself.
pub(crate) fn classify_sector(sector: &[u8]) -> SectorState {
    let known = [SectorMarker::Segment, SectorMarker::First, SectorMarker::Next];
    match sector.first() {
        Some(0) if sector.iter().all(|byte| *byte == 0) => SectorState::Blank,
        Some(first) => known
            .into_iter()
            .find(|marker| *marker as u8 == *first)
            .map_or(SectorState::Garbage, SectorState::Written),
        None => SectorState::Garbage,
    }
}

/// How many sectors `bytes` bytes take.
pub(crate) fn sector_count(bytes: usize) -> usize {
    bytes.div_ceil(PAYLOAD)
}

/// Spreads a head and what stands right behind it over sectors, the first of which begins with `first`.
pub(crate) fn split_into_sectors(head: &[u8], content: &[u8], first: SectorMarker) -> Vec<u8> {
    let length = sector_count(head.len() + content.len()) * SECTOR;
    let mut sectors = Vec::with_capacity(length);
    for mut rest in [head, content] {
        while !rest.is_empty() {
            if sectors.len() % SECTOR == 0 {
                sectors.push(if sectors.is_empty() { first as u8 } else { SectorMarker::Next as u8 });
            }
            let free = SECTOR - sectors.len() % SECTOR;
            let (part, rest_of_part) = rest.split_at(free.min(rest.len()));
            sectors.extend_from_slice(part);
            rest = rest_of_part;
        }
    }
    sectors.resize(length, 0);
    sectors
}

/// The bytes in `sectors`, without markers, with what fills the last one.
pub(crate) fn join_sectors(sectors: &[u8]) -> Vec<u8> {
    sectors.chunks(SECTOR).flat_map(|sector| &sector[1..]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_into_sectors_and_joining_round_trips() {
        for length in [1, 510, 511, 512, 1022, 1023, 5000] {
            let bytes: Vec<u8> = (0..length).map(|number: u32| number.to_le_bytes()[0]).collect();
            let sectors = split_into_sectors(&bytes, &[], SectorMarker::First);
            assert_eq!(sectors.len(), sector_count(bytes.len()) * SECTOR);
            assert_eq!(&join_sectors(&sectors)[..bytes.len()], &bytes[..]);
            assert_eq!(classify_sector(&sectors[..SECTOR]), SectorState::Written(SectorMarker::First));
            assert!(
                sectors
                    .chunks(SECTOR)
                    .skip(1)
                    .all(|next| classify_sector(next) == SectorState::Written(SectorMarker::Next))
            );
            for head in [0, 1, 44, 511, 512].into_iter().filter(|head| *head <= bytes.len()) {
                let (head, content) = bytes.split_at(head);
                assert_eq!(split_into_sectors(head, content, SectorMarker::First), sectors);
            }
        }
    }

    #[test]
    fn sector_markers_differ_in_at_least_four_bits() {
        let markers = [0, SectorMarker::Segment as u8, SectorMarker::First as u8, SectorMarker::Next as u8];
        for one in markers {
            for other in markers.into_iter().filter(|other| *other != one) {
                assert!((one ^ other).count_ones() >= 4, "{one:#x} and {other:#x}");
            }
        }
    }

    #[test]
    fn a_sector_with_a_blank_marker_and_something_in_it_is_garbage() {
        let mut sector = [0; SECTOR];
        assert_eq!(classify_sector(&sector), SectorState::Blank);
        sector[300] = 1;
        assert_eq!(classify_sector(&sector), SectorState::Garbage);
    }
}
