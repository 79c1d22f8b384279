//! Reads what is durable, beside the writer and without waiting for it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::checkpoint_files;
use super::disk::Disk;
use super::identity::LedgerIdentity;
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

    fn newest_checkpoint(&self) -> Result<Option<Checkpoint>, ReadError> {
        Ok(checkpoint_files::scan(&*self.0.disk, self.0.identity.ledger)?.newest)
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
            batches_of(&segment_index, segments[index], until)
        });
        Box::new(pruned.into_iter().chain(batches.filter(move |batch| is_after(batch, after))))
    }
}

fn is_after(batch: &Result<Batch, ReadError>, after: Seq) -> bool {
    batch.as_ref().map_or(true, |batch| batch.last() > after)
}

/// The batches of a segment that no later segment begins with a copy of.
fn batches_of(
    segment_index: &SegmentIndex,
    head: SegmentHeader,
    until: Seq,
) -> Vec<Result<Batch, ReadError>> {
    if until <= head.after.seq {
        return Vec::new();
    }
    let name = Segment::file_name(head.number);
    let read = || -> Result<Segment, ReadError> {
        // It may have been pruned since the list was read.
        let gone =
            || ReadError::OutOfRange { requested: head.after.seq, first: pruned_through(segment_index) };
        let bytes = segment_index.disk.read(&name)?.ok_or_else(gone)?;
        let segment = Segment::read_until(&segment_index.disk.path(&name), &bytes, until)?;
        if segment.last.seq < until {
            // All of this is durable. What reads as blank was lost since.
            let (file, offset, after) = (segment.path, segment.end, segment.last.seq);
            return Err(
                Damage { file, offset, after, reason: "records that were durable are missing" }.into()
            );
        }
        Ok(segment)
    };
    match read() {
        Ok(segment) => segment.batches.into_iter().filter(|batch| batch.last() <= until).map(Ok).collect(),
        Err(error) => vec![Err(error)],
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
