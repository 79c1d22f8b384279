//! What the writer of a ledger, its readers and its upkeep know together.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::blanks::Blanks;
use super::disk::Disk;
use super::identity::Identity;
use super::segment::SegmentHead;
use crate::ledger::Head;

/// Which files there are, and up to where they can be read.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) identity: Identity,
    pub(crate) blanks: Blanks,
    content: Mutex<Content>,
    changed: Condvar,
}

/// What changes while the ledger is open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    /// In order. The first may be another than number 1 once something was pruned.
    pub(crate) segments: Vec<SegmentHead>,
    /// Everything up to here is durable.
    pub(crate) head: Head,
    /// Where the checkpoints are, oldest first.
    pub(crate) checkpoints: Vec<Head>,
    /// The writer began a segment, or ended.
    pub(crate) has_news: bool,
}

impl Catalog {
    pub(crate) fn new(disk: Arc<dyn Disk>, identity: Identity, blanks: Blanks, content: Content) -> Catalog {
        Catalog { disk, identity, blanks, content: Mutex::new(content), changed: Condvar::new() }
    }

    /// What there is at this moment.
    pub(crate) fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock()
    }

    /// Tells the upkeep that there may be something to do.
    pub(crate) fn tell(&self) {
        self.content().has_news = true;
        self.changed.notify_all();
    }

    /// Waits for something to do, at most this long.
    pub(crate) fn wait(&self, at_most: Duration) {
        let mut content = self.content();
        self.changed.wait_while_for(&mut content, |content| !content.has_news, at_most);
        content.has_news = false;
    }
}
