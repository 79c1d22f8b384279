//! What a ledger needs done beside its writer: blank files, checkpoints, pruning.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{Tick, decode};

use super::checkpoint_files::{self, MAX_CHECKPOINTS};
use super::reader::LedgerReader;
use super::segment::{Segment, SegmentHeader};
use super::segment_index::SegmentIndex;
use crate::checkpoint::Checkpoint;
use crate::error::ReadError;
use crate::ledger::{Head, Retention, Seq};

/// Looks after a ledger that somebody else writes, in the same process. None of it is needed for what is durable to
/// be durable: without it, a rotation takes longer, a start reads more, and nothing is pruned.
#[derive(Debug, Clone)]
pub struct LedgerMaintenance(Arc<SegmentIndex>);

impl LedgerMaintenance {
    pub(crate) fn new(segment_index: Arc<SegmentIndex>) -> LedgerMaintenance {
        LedgerMaintenance(segment_index)
    }

    /// Waits until there may be something to do, at most this long.
    pub fn wait_for_work(&self, timeout: Duration) {
        self.0.wait_for_work(timeout);
    }

    /// Ends a wait at once.
    pub fn wake(&self) {
        self.0.wake_maintenance();
    }

    /// Makes the next segment and the reserve. Without room there is an error, and the next try may find some.
    pub fn fill_segment_pool(&self) -> io::Result<()> {
        while self.0.pool.is_incomplete() {
            self.0.pool.make_spare()?;
            if self.0.pool.make_reserve()? {
                break;
            }
        }
        Ok(())
    }

    /// Reads what is durable.
    pub fn reader(&self) -> LedgerReader {
        LedgerReader::new(self.0.clone())
    }

    /// Up to where the newest checkpoint goes; the beginning if there is none.
    pub fn newest_checkpoint_head(&self) -> Head {
        self.0.state().checkpoints.last().copied().unwrap_or_default()
    }

    /// The newest checkpoint.
    pub fn newest_checkpoint(&self) -> Result<Option<Checkpoint>, ReadError> {
        Ok(checkpoint_files::scan(&*self.0.disk, self.0.identity.ledger)?.newest)
    }

    /// Keeps a checkpoint that [`Checkpoint::write`] made, and drops those that are too old to be needed.
    pub fn store_checkpoint(&self, head: Head, bytes: &[u8]) -> io::Result<()> {
        checkpoint_files::write(&*self.0.disk, head.seq, bytes)?;
        let stale: Vec<Head> = {
            let mut content = self.0.state();
            content.checkpoints.retain(|other| *other != head);
            content.checkpoints.push(head);
            let stale = content.checkpoints.len().saturating_sub(MAX_CHECKPOINTS);
            content.checkpoints.drain(..stale).collect()
        };
        stale.iter().try_for_each(|head| self.0.disk.remove(&checkpoint_files::file_name(head.seq)))
    }

    /// Removes segments that are older, or more, than is to be kept and that both checkpoints have behind them.
    /// `now` is the newest tick. Says how many went.
    pub fn prune(&self, retention: Retention, now: Tick) -> Result<usize, ReadError> {
        let mut pruned = 0;
        while let Some(segment) = self.prunable(retention, now)? {
            // Off the list first: whoever reads finds that it is gone, not that it is damaged.
            self.0.state().segments.remove(0);
            // One after the other, in order: a crash must leave no hole. Nor must a failure: then this one is tried
            // again before the next.
            let name = Segment::file_name(segment.number);
            if let Err(error) = self.0.disk.remove(&name).and_then(|()| self.0.disk.sync()) {
                self.0.state().segments.insert(0, segment);
                return Err(error.into());
            }
            pruned += 1;
        }
        Ok(pruned)
    }

    fn prunable(&self, retention: Retention, now: Tick) -> Result<Option<SegmentHeader>, ReadError> {
        let content = self.0.state().clone();
        let [first, second, ..] = content.segments[..] else { return Ok(None) };
        let [older, _] = content.checkpoints[..] else { return Ok(None) };
        if second.after.seq > older.seq {
            return Ok(None);
        }
        Ok(self.is_retention_exceeded(retention, now)?.then_some(first))
    }

    /// Whether there is more, or older, than is to be kept, whatever checkpoints there are.
    pub fn is_retention_exceeded(&self, retention: Retention, now: Tick) -> Result<bool, ReadError> {
        let segments = self.0.state().segments.clone();
        let [_, second, ..] = segments[..] else { return Ok(false) };
        let bytes: u64 = segments.iter().map(|segment| segment.size).sum();
        let is_old =
            || self.first_tick(second).map(|tick| tick.is_some_and(|tick| now.since(tick) > retention.age));
        Ok(bytes > retention.bytes || is_old()?)
    }

    /// When the first event of a segment happened: all before it are older.
    fn first_tick(&self, segment: SegmentHeader) -> Result<Option<Tick>, ReadError> {
        let (name, disk) = (Segment::file_name(segment.number), &*self.0.disk);
        let bytes = disk.read(&name)?.unwrap_or_default();
        // An entry about a key has no tick: a few events further there is one.
        let until = Seq(self.0.state().head.seq.0.min(segment.after.seq.0 + 8));
        let read = Segment::read_until(&disk.path(&name), &bytes, until)?;
        let tag = self.0.identity.ledger.tag();
        let records = read.batches.iter().flat_map(|batch| &batch.records);
        Ok(records
            .filter_map(|record| decode(record, tag).ok().flatten())
            .map(|event| event.occurred_at())
            .next())
    }
}
