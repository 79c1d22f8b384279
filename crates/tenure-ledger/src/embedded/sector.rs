//! How bytes lie on the disk: in sectors, each of which shows whether it was written.
//!
//! ```text
//! sector   ┌────────┬──────────────────────────────────────────────┐
//! 512      │ marker │ 511 bytes                                    │
//!          └────────┴──────────────────────────────────────────────┘
//! ```
//!
//! A disk writes a sector whole or not at all. Files are filled with zeros beforehand, and no marker is zero, so a
//! write that was cut short leaves sectors that are still zero. That, and nothing else, makes a tail torn.
//! Markers differ from each other and from zero in at least four bits: one flipped bit makes none of another.

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
