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

use super::sector::{self, Marker, SECTOR, Sector, gather, look_at, sectors_for, spread};
use crate::batch::{Hash, chain};

const HEAD: usize = 44;

/// What stands at a place in a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A whole record of this many sectors.
    Record { content: Vec<u8>, hash: Hash, sectors: usize },
    /// A record of which some sectors were never written.
    Torn { sectors: usize },
    /// Nothing was written here.
    Blank,
    /// Something that cannot be.
    Damaged(&'static str),
}

/// The sectors of a record with this content, after a record with the hash `previous`.
pub(crate) fn encode(content: &[u8], previous: Hash) -> Option<(Vec<u8>, Hash)> {
    let length = u32::try_from(content.len()).ok()?.to_be_bytes();
    let hash = chain(previous, content);
    let sum = crc32c::crc32c(content).to_be_bytes();
    let mut head = Vec::with_capacity(HEAD);
    head.extend(length);
    head.extend(sum);
    head.extend(head_sum(length, sum, hash).to_be_bytes());
    head.extend(hash.0);
    Some((spread(&head, content, Marker::First), hash))
}

/// What stands at the beginning of `bytes`, which end with the segment.
pub(crate) fn find(bytes: &[u8], previous: Hash) -> Found {
    let Some(first) = bytes.get(..SECTOR) else { return Found::Blank };
    match look_at(first) {
        Sector::Blank => return Found::Blank,
        Sector::Written(Marker::First) => {}
        Sector::Written(Marker::Segment) => return Found::Damaged("a segment begins inside of a segment"),
        Sector::Written(Marker::Next) => return Found::Damaged("the rest of a record has no beginning"),
        Sector::Garbage => return Found::Damaged("a sector was overwritten"),
    }
    let Some(head) = Head::parse(&first[1..]) else {
        return Found::Damaged("the head of a record has a wrong sum");
    };
    let sectors = sectors_for(HEAD + head.length);
    let Some(whole) = bytes.get(..sectors * SECTOR) else {
        return Found::Damaged("a record is longer than its segment");
    };
    let rest = whole.chunks(SECTOR).skip(1).map(look_at);
    if rest.clone().any(|sector| sector == Sector::Blank) {
        return Found::Torn { sectors };
    }
    if rest.into_iter().any(|sector| sector != Sector::Written(Marker::Next)) {
        return Found::Damaged("a sector of a record was overwritten");
    }
    let gathered = gather(whole);
    let (content, padding) = gathered[HEAD..].split_at(head.length);
    if padding.iter().any(|byte| *byte != 0) {
        return Found::Damaged("something stands behind the content of a record");
    }
    if crc32c::crc32c(content) != head.content_sum {
        return Found::Damaged("the content of a record has a wrong sum");
    }
    if chain(previous, content) != head.hash {
        return Found::Damaged("a record does not follow from the one before");
    }
    Found::Record { content: content.to_vec(), hash: head.hash, sectors }
}

struct Head {
    length: usize,
    content_sum: u32,
    hash: Hash,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Head> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (sum, rest) = rest.split_first_chunk::<4>()?;
        let (own_sum, rest) = rest.split_first_chunk::<4>()?;
        let (hash, _) = rest.split_first_chunk::<32>()?;
        let hash = Hash(*hash);
        let believed = u32::from_be_bytes(*own_sum) == head_sum(*length, *sum, hash);
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        believed.then_some(Head { length, content_sum: u32::from_be_bytes(*sum), hash })
    }
}

fn head_sum(length: [u8; 4], content_sum: [u8; 4], hash: Hash) -> u32 {
    let sum = crc32c::crc32c(&length);
    let sum = crc32c::crc32c_append(sum, &content_sum);
    crc32c::crc32c_append(sum, &hash.0)
}

const _: () = assert!(HEAD <= sector::PAYLOAD, "the head of a record is in its first sector");
