//! From segment to segment: each must go on where the one before ended, and the chain through the points that are
//! known from elsewhere.

use super::Damage;
use super::identity::Identity;
use super::segment::{Segment, SegmentHead};
use crate::batch::Batch;
use crate::ledger::{Head, LedgerId, Seq};

/// Checks segments in their order, and hands out the batches in them, each once.
#[derive(Debug)]
pub(crate) struct Walk {
    identity: Identity,
    /// Points of the chain that checkpoints vouch for.
    anchors: Vec<Head>,
    /// A point of the chain that the witness vouches for.
    witnessed: Option<Head>,
    /// How the segment before ended.
    before: Option<Ends>,
    pub(crate) segments: Vec<SegmentHead>,
    pub(crate) head: Head,
    pub(crate) batches: u64,
    /// The last segment holds the copy of a record and nothing else. It was synced before the segment had its name,
    /// so it need not be copied again: who starts again and again must not fill the disk.
    pub(crate) ends_with_a_copy: bool,
}

#[derive(Debug, Clone, Copy)]
struct Ends {
    number: u64,
    before_last: Head,
    last: Head,
    is_empty: bool,
}

impl Walk {
    /// A walk through `anchors`, which are points of the chain that checkpoints vouch for.
    pub(crate) fn new(identity: Identity, anchors: Vec<Head>, witnessed: Option<Head>) -> Walk {
        let (segments, head) = (Vec::new(), Head::default());
        Walk {
            identity,
            anchors,
            witnessed,
            before: None,
            segments,
            head,
            batches: 0,
            ends_with_a_copy: false,
        }
    }

    /// Takes the next segment, and what is in it that the one before had not.
    pub(crate) fn take(&mut self, segment: &mut Segment) -> Result<Vec<Batch>, Damage> {
        self.check_place(segment)?;
        let is_copy = self.check_joint(segment)?;
        let mut batches = std::mem::take(&mut segment.batches);
        if self.before.is_none() {
            // What the witness saw lies before all that is read: it cannot be asked, and the ledger went on since.
            self.witnessed = self.witnessed.filter(|seen| seen.seq >= segment.head.after.seq);
        }
        self.meet(segment.head.after);
        for batch in &batches {
            self.meet(Head { seq: batch.last(), hash: batch.hash });
        }
        // A checkpoint stands between two batches of this very chain.
        if let Some(missed) = self.anchors.iter().find(|anchor| anchor.seq <= segment.last.seq) {
            let after = Seq(missed.seq.0);
            let reason = "the ledger does not go through its checkpoint";
            return Err(Damage { file: segment.path.clone(), offset: 0, after, reason });
        }
        self.before = Some(Ends {
            number: segment.head.number,
            before_last: segment.before_last,
            last: segment.last,
            is_empty: batches.is_empty(),
        });
        self.segments.push(segment.head);
        self.head = segment.last;
        self.ends_with_a_copy = is_copy && batches.len() == 1 && !segment.is_torn;
        if is_copy {
            batches.remove(0);
        }
        self.batches += batches.len() as u64;
        Ok(batches)
    }

    /// Notes a segment that is not read: a checkpoint stands behind it.
    pub(crate) fn pass_over(&mut self, segment: SegmentHead) {
        self.segments.push(segment);
    }

    /// Whether the chain went through what the witness saw.
    pub(crate) fn has_met_witness(&self) -> bool {
        self.witnessed.is_none()
    }

    /// A point that a checkpoint vouches for and that the ledger does not reach.
    pub(crate) fn unreached(&self) -> Option<Head> {
        self.anchors.first().copied()
    }

    fn meet(&mut self, point: Head) {
        self.anchors.retain(|anchor| *anchor != point);
        self.witnessed = self.witnessed.filter(|seen| *seen != point);
    }

    fn check_place(&self, segment: &Segment) -> Result<(), Damage> {
        let SegmentHead { ledger, epoch, .. } = segment.head;
        let own_number = segment.path.file_name().and_then(|name| Segment::number_of(name.to_str()?));
        let wrong: Option<&'static str> = if own_number != Some(segment.head.number) {
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
    fn check_joint(&self, segment: &Segment) -> Result<bool, Damage> {
        let after = segment.head.after;
        let Some(before) = self.before else {
            let is_first = segment.head.number == 1 && after == Head::default();
            // What was there before the first was pruned, and a checkpoint holds what it added up to.
            let is_kept = self.anchors.iter().any(|anchor| after.seq <= anchor.seq);
            let fits = is_first || is_kept;
            return if fits {
                Ok(false)
            } else {
                Err(damage(segment, "segments before this one are missing"))
            };
        };
        if segment.head.number != before.number + 1 {
            return Err(damage(segment, "a segment before this one is missing"));
        }
        // Also behind a tail that was cut short. A process that was killed in a write leaves a record in the system's
        // memory alone; the next one copies it into a new segment, and a power cut then takes the original.
        let goes_on = after == before.last;
        let first = segment.batches.first().map(|batch| batch.hash);
        let copies = !before.is_empty && after == before.before_last && first == Some(before.last.hash);
        if goes_on || copies {
            Ok(copies)
        } else {
            Err(damage(segment, "the segment does not go on where the one before ended"))
        }
    }
}

fn damage(segment: &Segment, reason: &'static str) -> Damage {
    Damage { file: segment.path.clone(), offset: 0, after: segment.head.after.seq, reason }
}
