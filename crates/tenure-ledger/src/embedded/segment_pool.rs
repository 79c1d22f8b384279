//! Files of zeros that wait to become segments: the next one, and a reserve for when the disk is full.
//!
//! ```text
//! spare        the next segment
//! reserve-1    used only when no spare can be made: renewals may take the first half, ends of leases the rest
//! reserve-2
//! taken        one that is becoming a segment
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::disk::{Disk, is_storage_full};
use crate::ledger::SpaceLevel;

const SPARE_FILE: &str = "spare";

/// A blank file that is becoming a segment.
const TAKEN_FILE: &str = "taken";

/// A blank file for a record that is larger than segments are now.
pub(crate) const OVERSIZED_FILE: &str = "larger";

/// The blank files of a ledger. Whoever makes one holds the lock meanwhile: the writer waits for it, instead of
/// making another.
#[derive(Debug)]
pub(crate) struct SegmentPool {
    disk: Arc<dyn Disk>,
    size: u64,
    /// How many files of reserve there should be.
    reserve: usize,
    state: Mutex<PoolState>,
    /// What the content says of room: the writer asks after every batch, and must not wait for whoever makes a file.
    is_disk_full: AtomicBool,
    remaining_reserve: AtomicUsize,
}

#[derive(Debug)]
struct PoolState {
    spare: SpareState,
    /// Which files of the reserve are there, the last one is taken first.
    reserve: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpareState {
    Ready,
    Missing,
    /// The last try found no room.
    NoSpace,
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
    /// The blank files that are there. Those of another size are not counted.
    pub(crate) fn scan(disk: Arc<dyn Disk>, size: u64, reserve_bytes: u64) -> io::Result<SegmentPool> {
        let reserve = usize::try_from(reserve_bytes.div_ceil(size)).unwrap_or(usize::MAX);
        // What a process did not live to finish takes room that others need.
        for name in disk.list()?.iter().filter(|name| is_unfinished(name)) {
            disk.remove(name)?;
        }
        let spare = if is_blank(&*disk, SPARE_FILE, size)? {
            SpareState::Ready
        } else {
            // One that was begun and not named is not blank any more, and takes room that another one needs.
            disk.remove(SPARE_FILE)?;
            SpareState::Missing
        };
        let mut found = Vec::new();
        for number in 1..=reserve {
            if disk.length(&reserve_name(number))? == Some(size) {
                found.push(number);
            }
        }
        let (is_disk_full, remaining_reserve) = (AtomicBool::new(false), AtomicUsize::new(found.len()));
        let content = Mutex::new(PoolState { spare, reserve: found });
        Ok(SegmentPool { disk, size, reserve, state: content, is_disk_full, remaining_reserve })
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
        let Some(number) = (1..=self.reserve).find(|number| !content.reserve.contains(number)) else {
            return Ok(true);
        };
        // Not under the lock: nobody takes what is not there yet, and the writer must not wait for it.
        drop(content);
        self.create_blank_file(&reserve_name(number))?;
        let mut content = self.state.lock();
        content.reserve.push(number);
        content.reserve.sort_unstable();
        self.publish_level(&content);
        Ok(content.reserve.len() == self.reserve)
    }

    /// The name of a blank file to write into: the spare, or one of the reserve when none can be made. It has a name
    /// of its own by then, for the next spare may be made at any moment.
    pub(crate) fn take(&self) -> Result<&'static str, TakeError> {
        let mut content = self.state.lock();
        match self.ensure_spare(&mut content) {
            Ok(()) => {
                self.disk.rename(SPARE_FILE, TAKEN_FILE).map_err(TakeError::InDoubt)?;
                content.spare = SpareState::Missing;
                self.publish_level(&content);
            }
            Err(error) if is_storage_full(&error) => {
                let number = content.reserve.pop().ok_or(TakeError::NotCreated(error))?;
                self.publish_level(&content);
                let renamed = self.disk.rename(&reserve_name(number), TAKEN_FILE);
                // A file of the reserve is believed to be blank by its name: it must never be found under it again.
                renamed.and_then(|()| self.disk.sync()).map_err(TakeError::InDoubt)?;
            }
            Err(error) => return Err(TakeError::NotCreated(error)),
        }
        Ok(TAKEN_FILE)
    }

    /// What there is room for, when `left` bytes are left in the current segment.
    pub(crate) fn space_level(&self, remaining_in_segment: u64) -> SpaceLevel {
        let reserve = self.remaining_reserve.load(Ordering::Acquire);
        if !self.is_disk_full.load(Ordering::Acquire) {
            SpaceLevel::Plenty
        } else if reserve * 2 > self.reserve {
            SpaceLevel::EndsAndRenewals
        } else if reserve > 0 || remaining_in_segment >= self.size / 4 {
            SpaceLevel::EndsOnly
        } else {
            SpaceLevel::Exhausted
        }
    }

    /// Whether there is something to make.
    pub(crate) fn is_incomplete(&self) -> bool {
        let content = self.state.lock();
        content.spare != SpareState::Ready || content.reserve.len() < self.reserve
    }

    fn ensure_spare(&self, content: &mut PoolState) -> io::Result<()> {
        if content.spare == SpareState::Ready {
            return Ok(());
        }
        let made = self.create_blank_file(SPARE_FILE);
        content.spare = match &made {
            Ok(()) => SpareState::Ready,
            Err(error) if is_storage_full(error) => SpareState::NoSpace,
            Err(_) => SpareState::Missing,
        };
        self.publish_level(content);
        made
    }

    fn publish_level(&self, content: &PoolState) {
        self.is_disk_full.store(content.spare == SpareState::NoSpace, Ordering::Release);
        self.remaining_reserve.store(content.reserve.len(), Ordering::Release);
    }

    fn create_blank_file(&self, name: &str) -> io::Result<()> {
        let unfinished = format!("{name}.new");
        let made = self
            .disk
            .create_zeroed(&unfinished, self.size)
            .and_then(|()| self.disk.rename(&unfinished, name));
        if made.is_err() {
            // What it took is needed for something else.
            let _ = self.disk.remove(&unfinished);
        }
        made
    }
}

fn is_unfinished(name: &str) -> bool {
    name.ends_with(".new") || [TAKEN_FILE, OVERSIZED_FILE].contains(&name)
}

fn reserve_name(number: usize) -> String {
    format!("reserve-{number}")
}

fn is_blank(disk: &dyn Disk, name: &str, size: u64) -> io::Result<bool> {
    if disk.length(name)? != Some(size) {
        return Ok(false);
    }
    Ok(disk.read(name)?.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)))
}
