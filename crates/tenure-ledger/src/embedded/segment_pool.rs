//! Files of zeros that wait to become segments: the next one, and a reserve for when the disk is full.
//!
//! ```text
//! spare        the next segment
//! reserve-1    used only when no spare can be made: renewals may take the first half, ends of leases the rest
//! reserve-2
//! taken        one that is becoming a segment
//! ```

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::disk::{Disk, is_storage_full};
use super::file_sizes::{FileSizes, ReserveFiles};
use super::record::SECTOR;
use crate::ledger::SpaceLevel;

const SPARE_FILE: &str = "spare";

/// A blank file that is becoming a segment.
const TAKEN_FILE: &str = "taken";

/// A blank file for a record that is larger than the next segment.
const OVERSIZED_FILE: &str = "larger";

/// The blank files of a ledger. Whoever makes one holds the lock meanwhile: the writer waits for it, instead of
/// making another.
#[derive(Debug)]
pub(crate) struct SegmentPool {
    disk: Arc<dyn Disk>,
    pub(crate) sizes: FileSizes,
    state: Mutex<PoolState>,
    /// How large the reserve should be; 0 until it is known how many leases there are: until then it stays as it is.
    planned_reserve: AtomicU64,
    /// What the content says of room: the writer asks after every batch, and must not wait for whoever makes a file.
    is_disk_full: AtomicBool,
    remaining_reserve: AtomicUsize,
    /// For how many leases and waiters the reserve is large enough.
    covered: AtomicU64,
}

#[derive(Debug)]
struct PoolState {
    spare: SpareState,
    /// The size of the spare that is made next.
    next_size: u64,
    /// The sizes of the files of the reserve, by their numbers. The last one is taken first.
    reserve: BTreeMap<usize, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpareState {
    /// With this size.
    Ready(u64),
    Missing,
    /// The last try found no room.
    NoSpace,
}

/// What to change so that the reserve is as planned.
#[derive(Debug, Clone, Copy)]
enum ReserveChange {
    /// Make this file, in place of one of another size if there is one.
    Make {
        number: usize,
        size: u64,
    },
    Remove {
        number: usize,
    },
}

/// A file of zeros that becomes a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlankFile {
    pub(crate) name: &'static str,
    pub(crate) size: u64,
}

/// Why there is no blank file to write into.
#[derive(Debug)]
pub(crate) enum TakeError {
    /// None could be made. Nothing has changed.
    NotCreated(io::Error),
    /// Nobody knows under which name it will be found again: a sync that failed is never tried again.
    InDoubt(io::Error),
}

impl From<TakeError> for io::Error {
    fn from(not_taken: TakeError) -> Self {
        match not_taken {
            TakeError::NotCreated(error) | TakeError::InDoubt(error) => error,
        }
    }
}

impl SegmentPool {
    /// The blank files that are there, for a ledger whose last segment has the size `last_segment`.
    pub(crate) fn scan(
        disk: Arc<dyn Disk>,
        sizes: FileSizes,
        last_segment: Option<u64>,
    ) -> io::Result<SegmentPool> {
        let names = disk.list()?;
        // What a process did not live to finish takes room that others need.
        for name in names.iter().filter(|name| is_unfinished(name)) {
            disk.remove(name)?;
        }
        let spare = match disk.length(SPARE_FILE)? {
            Some(size) if (sizes.min..=sizes.max).contains(&size) && is_blank(&*disk, SPARE_FILE)? => {
                SpareState::Ready(size)
            }
            _ => {
                // One that was begun and not named is not blank any more, and takes room that another one needs.
                disk.remove(SPARE_FILE)?;
                SpareState::Missing
            }
        };
        let mut reserve = BTreeMap::new();
        for number in names.iter().filter_map(|name| parse_reserve_name(name)) {
            let size = disk.length(&reserve_name(number))?.filter(|size| is_segment_size(*size));
            reserve.extend(size.map(|size| (number, size)));
        }
        let planned = if sizes.has_growing_reserve() { 0 } else { sizes.reserve_for(0) };
        let pool = SegmentPool {
            disk,
            sizes,
            state: Mutex::new(PoolState { spare, next_size: sizes.next_segment(last_segment), reserve }),
            planned_reserve: AtomicU64::new(planned),
            is_disk_full: AtomicBool::new(false),
            remaining_reserve: AtomicUsize::new(0),
            covered: AtomicU64::new(0),
        };
        pool.publish_level(&pool.state.lock());
        Ok(pool)
    }

    /// Plans a reserve for `live` leases and waiters. Returns whether the plan changed: then there is a reserve to
    /// make. It becomes smaller only at the first call, after a start.
    pub(crate) fn plan_reserve(&self, live: usize) -> bool {
        let planned = self.planned_reserve.load(Ordering::Acquire);
        let target = self.sizes.reserve_for(live);
        let has_changed = self.sizes.has_growing_reserve() && (planned == 0 || target > planned);
        if has_changed {
            self.planned_reserve.store(target, Ordering::Release);
        }
        has_changed
    }

    /// Makes the next segment, if it is not there.
    pub(crate) fn make_spare(&self) -> io::Result<()> {
        let mut content = self.state.lock();
        self.ensure_spare(&mut content)
    }

    /// Makes one more file of the reserve. Says whether it is whole now.
    pub(crate) fn make_reserve(&self) -> io::Result<bool> {
        let mut content = self.state.lock();
        // What there is room for, the next segment has first.
        self.ensure_spare(&mut content)?;
        match self.next_reserve_change(&content) {
            None => return Ok(true),
            Some(ReserveChange::Remove { number }) => {
                self.disk.remove(&reserve_name(number))?;
                content.reserve.remove(&number);
            }
            Some(ReserveChange::Make { number, size }) => {
                // Not under the lock: nobody takes what is not there yet, and the writer must not wait for it.
                drop(content);
                let (name, unfinished) = (reserve_name(number), unfinished_name(&reserve_name(number)));
                let created = self.disk.create_zeroed(&unfinished, size);
                content = self.state.lock();
                self.finish_blank_file(created, &unfinished, &name)?;
                content.reserve.insert(number, size);
            }
        }
        self.publish_level(&content);
        let is_whole = self.next_reserve_change(&content).is_none();
        if is_whole && self.sizes.has_growing_reserve() {
            // Grants rest on the size of the reserve, also after a power cut.
            self.disk.sync()?;
        }
        Ok(is_whole)
    }

    /// A blank file for a segment that begins with a record of so many bytes, its own head included: the spare, or
    /// one of the reserve when none can be made. It has a name of its own by then, for the next spare may be made at
    /// any moment.
    pub(crate) fn take(&self, required: u64) -> Result<BlankFile, TakeError> {
        let mut content = self.state.lock();
        let blank = match self.take_or_create(&mut content, required) {
            Err(TakeError::NotCreated(error)) if is_storage_full(&error) => {
                self.take_reserve(&mut content, required, error)?
            }
            taken => taken?,
        };
        content.next_size = self.sizes.next_segment(Some(blank.size));
        Ok(blank)
    }

    fn take_or_create(&self, content: &mut PoolState, required: u64) -> Result<BlankFile, TakeError> {
        let planned = match content.spare {
            SpareState::Ready(size) => size,
            SpareState::Missing | SpareState::NoSpace => content.next_size,
        };
        if planned < required {
            let size = self.sizes.segment_that_holds(required, planned);
            let created = self.disk.create_zeroed(OVERSIZED_FILE, size);
            return match created {
                Ok(()) => Ok(BlankFile { name: OVERSIZED_FILE, size }),
                Err(error) => {
                    // What it took is needed for something else.
                    let _ = self.disk.remove(OVERSIZED_FILE);
                    Err(TakeError::NotCreated(error))
                }
            };
        }
        self.ensure_spare(content).map_err(TakeError::NotCreated)?;
        self.disk.rename(SPARE_FILE, TAKEN_FILE).map_err(TakeError::InDoubt)?;
        content.spare = SpareState::Missing;
        self.publish_level(content);
        Ok(BlankFile { name: TAKEN_FILE, size: planned })
    }

    fn take_reserve(
        &self,
        content: &mut PoolState,
        required: u64,
        reason: io::Error,
    ) -> Result<BlankFile, TakeError> {
        let found = content.reserve.iter().rev().find(|(_, size)| **size >= required);
        let (number, size) =
            found.map(|(number, size)| (*number, *size)).ok_or(TakeError::NotCreated(reason))?;
        content.reserve.remove(&number);
        self.publish_level(content);
        let renamed = self.disk.rename(&reserve_name(number), TAKEN_FILE);
        // A file of the reserve is believed to be blank by its name: it must never be found under it again.
        renamed.and_then(|()| self.disk.sync()).map_err(TakeError::InDoubt)?;
        Ok(BlankFile { name: TAKEN_FILE, size })
    }

    /// What there is room for, when `remaining_in_segment` bytes are left in the current segment and there are `live`
    /// leases and waiters.
    pub(crate) fn space_level(&self, remaining_in_segment: u64, live: usize) -> SpaceLevel {
        let reserve = self.remaining_reserve.load(Ordering::Acquire);
        if !self.is_disk_full.load(Ordering::Acquire) {
            // If the disk filled up, leases that the reserve is too small for could not end.
            let is_covered = (live as u64) < self.covered.load(Ordering::Acquire);
            if is_covered { SpaceLevel::Plenty } else { SpaceLevel::EndsAndRenewals }
        } else if reserve * 2 > self.sizes.reserve_files(self.planned_reserve.load(Ordering::Acquire)).count {
            SpaceLevel::EndsAndRenewals
        } else if reserve > 0 || remaining_in_segment >= self.sizes.min / 4 {
            SpaceLevel::EndsOnly
        } else {
            SpaceLevel::Exhausted
        }
    }

    /// Whether there is something to make.
    pub(crate) fn is_incomplete(&self) -> bool {
        let content = self.state.lock();
        !matches!(content.spare, SpareState::Ready(_)) || self.next_reserve_change(&content).is_some()
    }

    fn next_reserve_change(&self, content: &PoolState) -> Option<ReserveChange> {
        let planned = self.planned_reserve.load(Ordering::Acquire);
        if planned == 0 {
            return None;
        }
        let ReserveFiles { count, size } = self.sizes.reserve_files(planned);
        let missing = (1..=count).find(|number| content.reserve.get(number) != Some(&size));
        let surplus = || content.reserve.last_key_value().filter(|(number, _)| **number > count);
        missing
            .map(|number| ReserveChange::Make { number, size })
            .or_else(|| surplus().map(|(number, _)| ReserveChange::Remove { number: *number }))
    }

    fn ensure_spare(&self, content: &mut PoolState) -> io::Result<()> {
        if let SpareState::Ready(_) = content.spare {
            return Ok(());
        }
        let unfinished = unfinished_name(SPARE_FILE);
        let created = self.disk.create_zeroed(&unfinished, content.next_size);
        let made = self.finish_blank_file(created, &unfinished, SPARE_FILE);
        content.spare = match &made {
            Ok(()) => SpareState::Ready(content.next_size),
            Err(error) if is_storage_full(error) => SpareState::NoSpace,
            Err(_) => SpareState::Missing,
        };
        self.publish_level(content);
        made
    }

    fn publish_level(&self, content: &PoolState) {
        self.is_disk_full.store(content.spare == SpareState::NoSpace, Ordering::Release);
        self.remaining_reserve.store(content.reserve.len(), Ordering::Release);
        let covered = self.sizes.covered_by(content.reserve.values().sum());
        self.covered.store(covered, Ordering::Release);
    }

    /// Gives a blank file its name, or removes what is there of it.
    fn finish_blank_file(&self, created: io::Result<()>, unfinished: &str, name: &str) -> io::Result<()> {
        let made = created.and_then(|()| self.disk.rename(unfinished, name));
        if made.is_err() {
            // What it took is needed for something else.
            let _ = self.disk.remove(unfinished);
        }
        made
    }
}

fn is_unfinished(name: &str) -> bool {
    name.ends_with(".new") || [TAKEN_FILE, OVERSIZED_FILE].contains(&name)
}

fn unfinished_name(name: &str) -> String {
    format!("{name}.new")
}

fn reserve_name(number: usize) -> String {
    format!("reserve-{number}")
}

fn parse_reserve_name(name: &str) -> Option<usize> {
    let number = name.strip_prefix("reserve-")?.parse().ok()?;
    (number > 0 && reserve_name(number) == name).then_some(number)
}

fn is_segment_size(size: u64) -> bool {
    size > SECTOR as u64 && size.is_multiple_of(SECTOR as u64)
}

fn is_blank(disk: &dyn Disk, name: &str) -> io::Result<bool> {
    Ok(disk.read(name)?.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)))
}
