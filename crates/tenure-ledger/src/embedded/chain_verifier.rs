//! Verifies the chain of segments: each continues where the one before ended, and the chain runs through the points that are
//! known from checkpoints and the witness.

use super::identity::LedgerIdentity;
use super::segment::{Segment, SegmentHeader};
use crate::batch::Batch;
use crate::error::Damage;
use crate::ledger::{Head, LedgerId, Seq};

/// Checks segments in their order, and hands out the batches in them, each once.
#[derive(Debug)]
pub(crate) struct ChainVerifier {
    identity: LedgerIdentity,
    /// Points of the chain that checkpoints vouch for.
    anchors: Vec<Head>,
    /// A point of the chain that the witness vouches for.
    witnessed: Option<Head>,
    /// How the segment before ended.
    before: Option<SegmentTail>,
    pub(crate) segments: Vec<SegmentHeader>,
    pub(crate) head: Head,
    pub(crate) batches: u64,
    /// The last segment holds the copy of a record and nothing else. It was synced before the segment had its name,
    /// so it need not be copied again: who starts again and again must not fill the disk.
    pub(crate) ends_with_copied_record: bool,
}

#[derive(Debug, Clone, Copy)]
struct SegmentTail {
    number: u64,
    before_last: Head,
    last: Head,
    is_empty: bool,
}

impl ChainVerifier {
    /// A walk through `anchors`, which are points of the chain that checkpoints vouch for.
    pub(crate) fn new(
        identity: LedgerIdentity,
        anchors: Vec<Head>,
        witnessed: Option<Head>,
    ) -> ChainVerifier {
        let (segments, head) = (Vec::new(), Head::default());
        ChainVerifier {
            identity,
            anchors,
            witnessed,
            before: None,
            segments,
            head,
            batches: 0,
            ends_with_copied_record: false,
        }
    }

    /// Takes the next segment, and what is in it that the one before had not.
    pub(crate) fn verify_segment(&mut self, segment: &mut Segment) -> Result<Vec<Batch>, Damage> {
        self.check_identity(segment)?;
        let is_copy = self.check_continuity(segment)?;
        let mut batches = std::mem::take(&mut segment.batches);
        if self.before.is_none() {
            // What the witness saw lies before all that is read: it cannot be asked, and the ledger went on since.
            self.witnessed = self.witnessed.filter(|seen| seen.seq >= segment.header.after.seq);
        }
        self.mark_reached(segment.header.after);
        for batch in &batches {
            self.mark_reached(Head { seq: batch.last(), hash: batch.hash });
        }
        // A checkpoint stands between two batches of this very chain.
        if let Some(missed) = self.anchors.iter().find(|anchor| anchor.seq <= segment.last.seq) {
            let after = Seq(missed.seq.0);
            let reason = "the ledger does not go through its checkpoint";
            return Err(Damage { file: segment.path.clone(), offset: 0, after, reason });
        }
        self.before = Some(SegmentTail {
            number: segment.header.number,
            before_last: segment.before_last,
            last: segment.last,
            is_empty: batches.is_empty(),
        });
        self.segments.push(segment.header);
        self.head = segment.last;
        self.ends_with_copied_record = is_copy && batches.len() == 1 && !segment.is_torn;
        if is_copy {
            batches.remove(0);
        }
        self.batches += batches.len() as u64;
        Ok(batches)
    }

    /// Notes a segment that is not read: a checkpoint stands behind it.
    pub(crate) fn skip_segment(&mut self, segment: SegmentHeader) {
        self.segments.push(segment);
    }

    /// Whether the chain went through what the witness saw.
    pub(crate) fn has_reached_witness(&self) -> bool {
        self.witnessed.is_none()
    }

    /// A point that a checkpoint vouches for and that the ledger does not reach.
    pub(crate) fn unreached_checkpoint_head(&self) -> Option<Head> {
        self.anchors.first().copied()
    }

    fn mark_reached(&mut self, point: Head) {
        self.anchors.retain(|anchor| *anchor != point);
        self.witnessed = self.witnessed.filter(|seen| *seen != point);
    }

    fn check_identity(&self, segment: &Segment) -> Result<(), Damage> {
        let SegmentHeader { ledger, epoch, .. } = segment.header;
        let own_number = segment.path.file_name().and_then(|name| Segment::parse_file_name(name.to_str()?));
        let wrong: Option<&'static str> = if own_number != Some(segment.header.number) {
            Some("the segment stands under another number")
        } else if ledger != self.identity.ledger || ledger == LedgerId([0; 16]) {
            Some("the segment belongs to another ledger")
        } else if epoch > self.identity.epoch {
            Some("the segment is of a later epoch than the ledger")
        } else {
            None
        };
        wrong.map_or(Ok(()), |reason| Err(damage(segment, reason)))
    }

    /// A segment goes on where the one before ended, or begins with a copy of that one's last record. Says whether
    /// it does that.
    fn check_continuity(&self, segment: &Segment) -> Result<bool, Damage> {
        let after = segment.header.after;
        let Some(before) = self.before else {
            let is_first = segment.header.number == 1 && after == Head::default();
            // What was there before the first was pruned, and a checkpoint holds what it added up to.
            let is_kept = self.anchors.iter().any(|anchor| after.seq <= anchor.seq);
            let fits = is_first || is_kept;
            return if fits {
                Ok(false)
            } else {
                Err(damage(segment, "segments before this one are missing"))
            };
        };
        if segment.header.number != before.number + 1 {
            return Err(damage(segment, "a segment before this one is missing"));
        }
        // Also behind a tail that was cut short. A process that was killed in a write leaves a record in the system's
        // memory alone; the next one copies it into a new segment, and a power cut then takes the original.
        let continues = after == before.last;
        let first = segment.batches.first().map(|batch| batch.hash);
        let copies = !before.is_empty && after == before.before_last && first == Some(before.last.hash);
        if continues || copies {
            Ok(copies)
        } else {
            Err(damage(segment, "the segment does not go on where the one before ended"))
        }
    }
}

fn damage(segment: &Segment, reason: &'static str) -> Damage {
    Damage { file: segment.path.clone(), offset: 0, after: segment.header.after.seq, reason }
}
