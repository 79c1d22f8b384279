//! How large segments and the files of the reserve are.
//!
//! Segments double, so that a small ledger takes little of the disk. The reserve grows with the number of leases, so
//! that all of them can end on a full disk.

use super::ledger::LedgerOptions;
use super::record::SECTOR;

/// The size of the first segment. No file of the reserve is smaller: each becomes a segment when it is used.
const FIRST_SEGMENT: u64 = 1 << 20;

/// The reserve is divided into this many files, unless they would be too small or too large. The last of them serve
/// the ends of leases only, so one file would be too few.
const RESERVE_FILES: u64 = 4;

/// The growing reserve is no larger than this.
const MAX_RESERVE: u64 = 64 << 20;

/// How much of the reserve each lease and each waiter needs: twice the sector that its end takes if it is written
/// alone. Twice, because renewals take a part, and because a batch may grant more than was covered before it.
const RESERVE_PER_LEASE: u64 = 2 * SECTOR as u64;

/// The sizes that follow from [`LedgerOptions`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileSizes {
    /// The first segment.
    pub(crate) min: u64,
    /// The largest segment.
    pub(crate) max: u64,
    /// The size of the reserve, if it was configured: then it does not grow.
    fixed_reserve: Option<u64>,
}

/// The files that make up a reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReserveFiles {
    pub(crate) count: usize,
    pub(crate) size: u64,
}

impl FileSizes {
    pub(crate) fn new(options: &LedgerOptions) -> FileSizes {
        let max = options.segment_size;
        FileSizes { min: FIRST_SEGMENT.min(max), max, fixed_reserve: options.reserve }
    }

    /// The size of the segment after one of size `last`; of the first segment if there is none.
    pub(crate) fn next_segment(&self, last: Option<u64>) -> u64 {
        last.map_or(self.min, |last| last.saturating_mul(2).clamp(self.min, self.max))
    }

    /// The size of a segment that holds `required` bytes, and is no smaller than `planned`.
    pub(crate) fn segment_that_holds(&self, required: u64, planned: u64) -> u64 {
        let mut size = planned;
        while size < required && size < self.max {
            size = self.next_segment(Some(size));
        }
        // More than the largest segment: a record from before the configured size became smaller.
        size.max(required.next_multiple_of(SECTOR as u64))
    }

    /// How large the reserve should be for `live` leases and waiters.
    ///
    /// It covers four times as many, except at its largest, and grows in steps of four: so a step is finished before
    /// it is needed, and there are few steps.
    pub(crate) fn reserve_for(&self, live: usize) -> u64 {
        if let Some(bytes) = self.fixed_reserve {
            return bytes;
        }
        let mut bytes = RESERVE_FILES * self.min;
        while bytes < MAX_RESERVE && (live as u64).saturating_mul(RESERVE_PER_LEASE) > bytes / 4 {
            bytes = (bytes * RESERVE_FILES).min(MAX_RESERVE);
        }
        bytes
    }

    /// For how many leases and waiters a reserve of `bytes` is large enough.
    pub(crate) fn covered_by(&self, bytes: u64) -> u64 {
        if self.fixed_reserve.is_some() || bytes >= MAX_RESERVE {
            u64::MAX
        } else {
            bytes / RESERVE_PER_LEASE
        }
    }

    /// The files that make up a reserve of `bytes`. Each holds one write that ends everything that the reserve was
    /// made for.
    pub(crate) fn reserve_files(&self, bytes: u64) -> ReserveFiles {
        let quarter = bytes / RESERVE_FILES / SECTOR as u64 * SECTOR as u64;
        let size = quarter.clamp(self.min, self.max);
        ReserveFiles { count: usize::try_from(bytes.div_ceil(size)).unwrap_or(usize::MAX), size }
    }

    /// Whether the reserve grows.
    pub(crate) fn has_growing_reserve(&self) -> bool {
        self.fixed_reserve.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn sizes(segment_size: u64, reserve: Option<u64>) -> FileSizes {
        FileSizes::new(&LedgerOptions { segment_size, reserve, witness: None })
    }

    #[test]
    fn segments_double_between_1_mib_and_the_largest() {
        let sizes = sizes(16 * MIB, None);
        let doubled = std::iter::successors(Some(sizes.next_segment(None)), |last| {
            Some(sizes.next_segment(Some(*last)))
        });
        assert_eq!(doubled.take(6).map(|size| size / MIB).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 16]);
        // Segments that another configuration made.
        assert_eq!((sizes.next_segment(Some(4_096)), sizes.next_segment(Some(64 * MIB))), (MIB, 16 * MIB));
    }

    #[test]
    fn a_segment_doubles_until_it_holds_a_record() {
        let sizes = sizes(16 * MIB, None);
        assert_eq!(sizes.segment_that_holds(5 * MIB, 2 * MIB), 8 * MIB);
        assert_eq!(sizes.segment_that_holds(512, 2 * MIB), 2 * MIB);
        assert_eq!(sizes.segment_that_holds(40 * MIB, 2 * MIB), 40 * MIB);
    }

    #[test]
    fn the_reserve_grows_from_4_to_64_mib_in_steps_of_four() {
        let sizes = sizes(16 * MIB, None);
        for (live, reserve) in [(0, 4), (1_024, 4), (1_025, 16), (4_096, 16), (4_097, 64), (usize::MAX, 64)] {
            assert_eq!(sizes.reserve_for(live), reserve * MIB, "{live} leases");
        }
    }

    #[test]
    fn every_size_of_the_reserve_covers_what_it_was_made_for() {
        for segment_size in [4_096, 12_288, 65_536, MIB, 3 * MIB, 16 * MIB, 64 * MIB] {
            let sizes = sizes(segment_size, None);
            for live in (0..22).map(|power| 1_usize << power) {
                let files = sizes.reserve_files(sizes.reserve_for(live));
                assert!((sizes.min..=sizes.max).contains(&files.size) && files.count >= 4, "{files:?}");
                let covered = sizes.covered_by(files.count as u64 * files.size);
                assert!(covered >= 4 * live as u64, "{segment_size}: {live} leases, {covered} covered");
            }
        }
    }

    #[test]
    fn a_configured_reserve_does_not_grow() {
        for (reserve, count, size) in [(64 * MIB, 4, 16 * MIB), (4 * MIB, 4, MIB), (MIB, 1, MIB), (5, 1, MIB)]
        {
            let sizes = sizes(16 * MIB, Some(reserve));
            assert_eq!((sizes.reserve_for(0), sizes.reserve_for(1 << 20)), (reserve, reserve));
            assert_eq!(sizes.reserve_files(reserve), ReserveFiles { count, size });
            assert_eq!(sizes.covered_by(0), u64::MAX);
        }
        assert_eq!(sizes(16 * MIB, Some(0)).reserve_files(0).count, 0);
        assert_eq!(
            sizes(4_096, Some(8 * 4_096)).reserve_files(8 * 4_096),
            ReserveFiles { count: 8, size: 4_096 }
        );
    }
}
