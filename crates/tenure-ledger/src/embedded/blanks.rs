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

use super::disk::{Disk, is_no_space};
use crate::ledger::Room;

const SPARE: &str = "spare";

/// A blank file that is becoming a segment.
const TAKEN: &str = "taken";

/// A blank file for a record that is larger than segments are now.
pub(crate) const LARGER: &str = "larger";

/// The blank files of a ledger. Whoever makes one holds the lock meanwhile: the writer waits for it, instead of
/// making another.
#[derive(Debug)]
pub(crate) struct Blanks {
    disk: Arc<dyn Disk>,
    size: u64,
    /// How many files of reserve there should be.
    reserve: usize,
    content: Mutex<Content>,
    /// What the content says of room: the writer asks after every batch, and must not wait for whoever makes a file.
    has_no_room: AtomicBool,
    reserve_left: AtomicUsize,
}

#[derive(Debug)]
struct Content {
    spare: Spare,
    /// Which files of the reserve are there, the last one is taken first.
    reserve: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spare {
    Ready,
    Missing,
    /// The last try found no room.
    NoRoom,
}

/// Why there is no blank file to write into.
#[derive(Debug)]
pub(crate) enum NotTaken {
    /// None could be made. Nothing has changed.
    NotMade(io::Error),
    /// Nobody knows under which name it will be found again: a sync that failed is never tried again.
    InDoubt(io::Error),
}

impl From<NotTaken> for io::Error {
    fn from(not_taken: NotTaken) -> Self {
        match not_taken {
            NotTaken::NotMade(error) | NotTaken::InDoubt(error) => error,
        }
    }
}

impl Blanks {
    /// The blank files that are there. Those of another size are not counted.
    pub(crate) fn find(disk: Arc<dyn Disk>, size: u64, reserve_bytes: u64) -> io::Result<Blanks> {
        let reserve = usize::try_from(reserve_bytes.div_ceil(size)).unwrap_or(usize::MAX);
        // What a process did not live to finish takes room that others need.
        for name in disk.list()?.iter().filter(|name| is_unfinished(name)) {
            disk.remove(name)?;
        }
        let spare = if is_blank(&*disk, SPARE, size)? {
            Spare::Ready
        } else {
            // One that was begun and not named is not blank any more, and takes room that another one needs.
            disk.remove(SPARE)?;
            Spare::Missing
        };
        let mut found = Vec::new();
        for number in 1..=reserve {
            if disk.length(&reserve_name(number))? == Some(size) {
                found.push(number);
            }
        }
        let (has_no_room, reserve_left) = (AtomicBool::new(false), AtomicUsize::new(found.len()));
        let content = Mutex::new(Content { spare, reserve: found });
        Ok(Blanks { disk, size, reserve, content, has_no_room, reserve_left })
    }

    /// Makes the next segment, if it is not there.
    pub(crate) fn make_spare(&self) -> io::Result<()> {
        let mut content = self.content.lock();
        self.make(&mut content)
    }

    /// Makes one more file of the reserve. Says whether it is whole now.
    pub(crate) fn make_reserve(&self) -> io::Result<bool> {
        let mut content = self.content.lock();
        // What there is room for, the next segment has first.
        self.make(&mut content)?;
        let Some(number) = (1..=self.reserve).find(|number| !content.reserve.contains(number)) else {
            return Ok(true);
        };
        // Not under the lock: nobody takes what is not there yet, and the writer must not wait for it.
        drop(content);
        self.blank(&reserve_name(number))?;
        let mut content = self.content.lock();
        content.reserve.push(number);
        content.reserve.sort_unstable();
        self.note(&content);
        Ok(content.reserve.len() == self.reserve)
    }

    /// The name of a blank file to write into: the spare, or one of the reserve when none can be made. It has a name
    /// of its own by then, for the next spare may be made at any moment.
    pub(crate) fn take(&self) -> Result<&'static str, NotTaken> {
        let mut content = self.content.lock();
        match self.make(&mut content) {
            Ok(()) => {
                self.disk.rename(SPARE, TAKEN).map_err(NotTaken::InDoubt)?;
                content.spare = Spare::Missing;
                self.note(&content);
            }
            Err(error) if is_no_space(&error) => {
                let number = content.reserve.pop().ok_or(NotTaken::NotMade(error))?;
                self.note(&content);
                let renamed = self.disk.rename(&reserve_name(number), TAKEN);
                // A file of the reserve is believed to be blank by its name: it must never be found under it again.
                renamed.and_then(|()| self.disk.sync()).map_err(NotTaken::InDoubt)?;
            }
            Err(error) => return Err(NotTaken::NotMade(error)),
        }
        Ok(TAKEN)
    }

    /// What there is room for, when `left` bytes are left in the current segment.
    pub(crate) fn room(&self, left: u64) -> Room {
        let reserve = self.reserve_left.load(Ordering::Acquire);
        if !self.has_no_room.load(Ordering::Acquire) {
            Room::Plenty
        } else if reserve * 2 > self.reserve {
            Room::Renewals
        } else if reserve > 0 || left >= self.size / 4 {
            Room::Ends
        } else {
            Room::Nothing
        }
    }

    /// Whether there is something to make.
    pub(crate) fn are_wanted(&self) -> bool {
        let content = self.content.lock();
        content.spare != Spare::Ready || content.reserve.len() < self.reserve
    }

    fn make(&self, content: &mut Content) -> io::Result<()> {
        if content.spare == Spare::Ready {
            return Ok(());
        }
        let made = self.blank(SPARE);
        content.spare = match &made {
            Ok(()) => Spare::Ready,
            Err(error) if is_no_space(error) => Spare::NoRoom,
            Err(_) => Spare::Missing,
        };
        self.note(content);
        made
    }

    fn note(&self, content: &Content) {
        self.has_no_room.store(content.spare == Spare::NoRoom, Ordering::Release);
        self.reserve_left.store(content.reserve.len(), Ordering::Release);
    }

    fn blank(&self, name: &str) -> io::Result<()> {
        let unfinished = format!("{name}.new");
        let made = self.disk.blank(&unfinished, self.size).and_then(|()| self.disk.rename(&unfinished, name));
        if made.is_err() {
            // What it took is needed for something else.
            let _ = self.disk.remove(&unfinished);
        }
        made
    }
}

fn is_unfinished(name: &str) -> bool {
    name.ends_with(".new") || [TAKEN, LARGER].contains(&name)
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
