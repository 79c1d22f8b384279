//! Reads what is durable, beside the writer and without waiting for it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::checkpoint_files;
use super::disk::Disk;
use super::identity::LedgerIdentity;
use super::record::{self, RecordScan, SECTOR};
use super::segment::{Segment, SegmentHeader};
use super::segment_pool::SegmentPool;
use crate::batch::Batch;
use crate::checkpoint::Checkpoint;
use crate::error::{Damage, ReadError};
use crate::ledger::{Batches, Head, LedgerId, LedgerReader, Seq};

/// Reads a ledger that somebody else writes, in the same process.
#[derive(Debug)]
pub(crate) struct EmbeddedReader(pub(crate) Arc<SegmentIndex>);

impl LedgerReader for EmbeddedReader {
    fn ledger(&self) -> LedgerId {
        self.0.identity.ledger
    }

    fn epoch(&self) -> u64 {
        self.0.identity.epoch
    }

    fn head(&self) -> Head {
        self.0.state().head
    }

    fn pruned_through(&self) -> Seq {
        pruned_through(&self.0)
    }

    fn checkpoint_before(&self, at: Seq) -> Result<Option<Checkpoint>, ReadError> {
        Ok(checkpoint_files::scan(&*self.0.disk, self.0.identity.ledger, at)?.newest)
    }

    fn read(&self, after: Seq) -> Batches {
        let segment_index = self.0.clone();
        let (segments, head) = {
            let content = segment_index.state();
            (content.segments.clone(), content.head)
        };
        let first = segments.first().map_or(Seq(0), |segment| segment.after.seq);
        let pruned = (after < first).then_some(Err(ReadError::OutOfRange { requested: after, first }));
        // The last segment that begins at or before `after` holds what comes next.
        let from = segments.partition_point(|segment| segment.after.seq <= after).saturating_sub(1);
        let count = if pruned.is_some() || after >= head.seq { from } else { segments.len() };
        let batches = (from..count).flat_map(move |index| {
            let until = segments.get(index + 1).map_or(head.seq, |next| next.after.seq);
            SegmentBatches::new(segment_index.clone(), segments[index], until)
        });
        Box::new(pruned.into_iter().chain(batches.filter(move |batch| is_after(batch, after))))
    }
}

fn is_after(batch: &Result<Batch, ReadError>, after: Seq) -> bool {
    batch.as_ref().map_or(true, |batch| batch.last() > after)
}

/// How much of a segment is read at once. A record that is longer is read whole.
const WINDOW: usize = 128 << 10;

/// Reads the batches of one segment up to the event `until`, without keeping the segment in memory. What stands behind
/// that event is in the next segment, or is still being written.
struct SegmentBatches {
    segment_index: Arc<SegmentIndex>,
    header: SegmentHeader,
    until: Seq,
    /// Where the last batch ended.
    last: Head,
    /// A part of the file, where in the file it begins, and how much of it was returned.
    window: Vec<u8>,
    offset: u64,
    position: usize,
    has_failed: bool,
}

impl SegmentBatches {
    fn new(segment_index: Arc<SegmentIndex>, header: SegmentHeader, until: Seq) -> Self {
        let (last, window) = (header.after, Vec::new());
        Self { segment_index, header, until, last, window, offset: 0, position: 0, has_failed: false }
    }

    fn read_batch(&mut self) -> Result<Batch, ReadError> {
        if self.offset == 0 {
            self.fill(0, SECTOR)?;
            SegmentHeader::parse(&self.window).map_err(|reason| self.damage(reason))?;
            self.position = SECTOR;
        }
        loop {
            let scanned = record::scan(&self.window[self.position..], self.last.hash);
            if let RecordScan::Record { content, hash, sectors } = scanned {
                let batch = Batch::decode(Seq(self.last.seq.0 + 1), &content, hash);
                let batch = batch.ok_or_else(|| self.damage("a record is no batch"))?;
                self.position += sectors * SECTOR;
                self.last = batch.head();
                return Ok(batch);
            }
            if self.offset + self.window.len() as u64 >= self.header.size {
                let RecordScan::Damaged(reason) = scanned else {
                    // All of this is durable. What reads as blank was lost since.
                    return Err(self.damage("records that were durable are missing"));
                };
                return Err(self.damage(reason));
            }
            // The record may continue behind the window.
            let remaining = self.window.len() - self.position;
            self.fill(self.offset + self.position as u64, WINDOW.max(2 * remaining))?;
        }
    }

    fn fill(&mut self, offset: u64, length: usize) -> Result<(), ReadError> {
        let index = &self.segment_index;
        // The segment may have been pruned since the list was read.
        let gone =
            || ReadError::OutOfRange { requested: self.header.after.seq, first: pruned_through(index) };
        let name = Segment::file_name(self.header.number);
        self.window = index.disk.read_at(&name, offset, length)?.ok_or_else(gone)?;
        (self.offset, self.position) = (offset, 0);
        let is_cut = self.window.len() < length && offset + (self.window.len() as u64) < self.header.size;
        if is_cut { Err(self.damage("the file does not have its size")) } else { Ok(()) }
    }

    fn damage(&self, reason: &'static str) -> ReadError {
        let file = self.segment_index.disk.path(&Segment::file_name(self.header.number));
        let offset = self.offset + self.position as u64;
        Damage { file, offset, after: self.last.seq, reason }.into()
    }
}

impl Iterator for SegmentBatches {
    type Item = Result<Batch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed || self.last.seq >= self.until {
            return None;
        }
        let batch = self.read_batch();
        self.has_failed = batch.is_err();
        // The next segment begins with a copy of a batch that goes beyond `until`.
        Some(batch).filter(|_| self.last.seq <= self.until)
    }
}

fn pruned_through(segment_index: &SegmentIndex) -> Seq {
    segment_index.state().segments.first().map_or(Seq(0), |segment| segment.after.seq)
}

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
