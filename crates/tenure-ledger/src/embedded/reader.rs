//! Reads what is durable, beside the writer and without waiting for it.

use std::sync::Arc;

use super::checkpoint_files;
use super::segment::{Segment, SegmentHeader};
use super::segment_index::SegmentIndex;
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
