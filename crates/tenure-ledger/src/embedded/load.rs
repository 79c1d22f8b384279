//! Reads every segment of a directory and checks that each goes on where the one before ended.

use std::fs;
use std::path::Path;

use super::Damage;
use super::directory;
use super::identity::Identity;
use super::log::OpenError;
use super::segment::{Segment, SegmentHead};
use crate::ledger::{Head, Seq};
use crate::ledger_id::LedgerId;

/// What a directory holds.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) segments: Vec<SegmentHead>,
    /// The last segment, with what is in it.
    pub(crate) last: Option<Segment>,
    pub(crate) head: Head,
    pub(crate) batches: u64,
    /// Whether the hash of this point of the chain was met on the way.
    pub(crate) met_witness: bool,
}

/// Reads the segments in `directory`; `witnessed` is a point that the chain must go through.
pub(crate) fn load(directory: &Path, identity: &Identity, witnessed: Head) -> Result<Loaded, OpenError> {
    let mut loaded = Loaded { met_witness: witnessed == Head::default(), ..Loaded::default() };
    let mut before: Option<Segment> = None;
    for (number, path) in directory::segments(directory)? {
        let segment = Segment::read(&path, &fs::read(&path)?)?;
        check_place(&segment, number, identity)?;
        check_joint(before.as_ref(), &segment)?;
        let is_copy = before.as_ref().is_some_and(|before| before.last() != segment.head.after);
        loaded.batches += segment.batches.len() as u64 - u64::from(is_copy);
        let ends = segment.batches.iter().map(|batch| Head { seq: batch.last(), hash: batch.hash });
        loaded.met_witness |= ends.into_iter().any(|end| end == witnessed) || segment.head.after == witnessed;
        loaded.segments.push(segment.head);
        loaded.head = segment.last();
        before = Some(segment);
    }
    loaded.last = before;
    Ok(loaded)
}

fn check_place(segment: &Segment, number: u64, identity: &Identity) -> Result<(), Damage> {
    let SegmentHead { ledger, number: own, epoch, .. } = segment.head;
    let wrong: Option<&'static str> = if own != number {
        Some("the segment stands under another number")
    } else if ledger != identity.ledger || ledger == LedgerId([0; 16]) {
        Some("the segment belongs to another ledger")
    } else if epoch > identity.epoch {
        Some("the segment is of a later epoch than the ledger")
    } else {
        None
    };
    match wrong {
        Some(reason) => Err(damage(segment, reason)),
        None => Ok(()),
    }
}

/// A segment goes on where the one before ended, or begins with a copy of that one's last record.
fn check_joint(before: Option<&Segment>, segment: &Segment) -> Result<(), Damage> {
    let Some(before) = before else {
        let is_first = segment.head.number == 1 && segment.head.after == Head::default();
        return if is_first { Ok(()) } else { Err(damage(segment, "segments before this one are missing")) };
    };
    if segment.head.number != before.head.number + 1 {
        return Err(damage(segment, "a segment before this one is missing"));
    }
    let goes_on = segment.head.after == before.last() && !before.is_torn;
    let first = segment.batches.first().map(|batch| batch.hash);
    let copies = segment.head.after == before.before_last() && first == Some(before.last().hash);
    // A tail that was cut short with no whole record before it leaves nothing to copy.
    let replaces_nothing = before.batches.is_empty() && segment.head.after == before.last();
    if goes_on || copies || replaces_nothing {
        Ok(())
    } else {
        Err(damage(segment, "the segment does not go on where the one before ended"))
    }
}

fn damage(segment: &Segment, reason: &'static str) -> Damage {
    Damage { file: segment.path.clone(), offset: 0, after: Seq(segment.head.after.seq.0), reason }
}
