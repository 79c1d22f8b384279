//! Maintenance beside the writer: preallocated files, checkpoints, pruning.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::Tick;

use super::checkpoint_files::{self, MAX_CHECKPOINTS};
use super::reader::SegmentIndex;
use super::segment::{Segment, SegmentHeader};
use crate::error::ReadError;
use crate::ledger::{Head, LedgerMaintenance, Retention, Seq};

#[derive(Debug)]
pub(crate) struct EmbeddedMaintenance(pub(crate) Arc<SegmentIndex>);

impl LedgerMaintenance for EmbeddedMaintenance {
    fn wait_for_work(&self, timeout: Duration) {
        self.0.wait_for_work(timeout);
    }

    fn wake(&self) {
        self.0.wake_maintenance();
    }

    /// Makes the next segment and the reserve.
    fn prepare_space(&self) -> io::Result<()> {
        while self.0.pool.is_incomplete() {
            self.0.pool.make_spare()?;
            if self.0.pool.make_reserve()? {
                break;
            }
        }
        Ok(())
    }

    fn newest_checkpoint_head(&self) -> Head {
        self.0.state().checkpoints.last().copied().unwrap_or_default()
    }

    fn store_checkpoint(&self, head: Head, bytes: &[u8]) -> io::Result<()> {
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

    fn is_retention_exceeded(&self, retention: Retention, now: Tick) -> Result<bool, ReadError> {
        let segments = self.0.state().segments.clone();
        let [_, second, ..] = segments[..] else { return Ok(false) };
        let bytes: u64 = segments.iter().map(|segment| segment.size).sum();
        let is_old =
            || self.first_tick(second).map(|tick| tick.is_some_and(|tick| now.since(tick) > retention.age));
        Ok(bytes > retention.bytes || is_old()?)
    }

    /// Removes segments that are older, or more, than is to be kept and that both checkpoints have behind them.
    fn prune(&self, retention: Retention, now: Tick) -> Result<(), ReadError> {
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
        }
        Ok(())
    }
}

impl EmbeddedMaintenance {
    fn prunable(&self, retention: Retention, now: Tick) -> Result<Option<SegmentHeader>, ReadError> {
        let content = self.0.state().clone();
        let [first, second, ..] = content.segments[..] else { return Ok(None) };
        let [older, _] = content.checkpoints[..] else { return Ok(None) };
        if second.after.seq > older.seq {
            return Ok(None);
        }
        Ok(self.is_retention_exceeded(retention, now)?.then_some(first))
    }

    /// When the first event of a segment happened: all before it are older.
    fn first_tick(&self, segment: SegmentHeader) -> Result<Option<Tick>, ReadError> {
        let (name, disk) = (Segment::file_name(segment.number), &*self.0.disk);
        let bytes = disk.read(&name)?.unwrap_or_default();
        // An entry about a key has no tick: a few events further there is one.
        let until = Seq(self.0.state().head.seq.0.min(segment.after.seq.0 + 8));
        let read = Segment::read_until(&disk.path(&name), &bytes, until)?;
        let tag = self.0.identity.ledger.tag();
        Ok(read.batches.iter().find_map(|batch| batch.first_tick(tag)))
    }
}
