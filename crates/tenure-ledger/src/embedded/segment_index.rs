//! What the writer of a ledger, its readers and its upkeep know together.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::disk::Disk;
use super::identity::LedgerIdentity;
use super::segment::SegmentHeader;
use super::segment_pool::SegmentPool;
use crate::ledger::Head;

/// Which files there are, and up to where they can be read.
#[derive(Debug)]
pub(crate) struct SegmentIndex {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) identity: LedgerIdentity,
    pub(crate) pool: SegmentPool,
    state: Mutex<SegmentIndexState>,
    changed: Condvar,
}

/// What changes while the ledger is open.
#[derive(Debug, Clone, Default)]
pub(crate) struct SegmentIndexState {
    /// In order. The first may be another than number 1 once something was pruned.
    pub(crate) segments: Vec<SegmentHeader>,
    /// Everything up to here is durable.
    pub(crate) head: Head,
    /// Where the checkpoints are, oldest first.
    pub(crate) checkpoints: Vec<Head>,
    /// The writer began a segment, or ended.
    pub(crate) has_work: bool,
}

impl SegmentIndex {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        identity: LedgerIdentity,
        pool: SegmentPool,
        content: SegmentIndexState,
    ) -> SegmentIndex {
        SegmentIndex { disk, identity, pool, state: Mutex::new(content), changed: Condvar::new() }
    }

    /// What there is at this moment.
    pub(crate) fn state(&self) -> MutexGuard<'_, SegmentIndexState> {
        self.state.lock()
    }

    /// Tells the upkeep that there may be something to do.
    pub(crate) fn wake_maintenance(&self) {
        self.state().has_work = true;
        self.changed.notify_all();
    }

    /// Waits for something to do, at most this long.
    pub(crate) fn wait_for_work(&self, timeout: Duration) {
        let mut content = self.state();
        self.changed.wait_while_for(&mut content, |content| !content.has_work, timeout);
        content.has_work = false;
    }
}
