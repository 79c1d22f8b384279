//! Reads a whole ledger and changes nothing: what `tenure verify` says.

use std::path::Path;

use super::Damage;
use super::checkpoints;
use super::directory::Directory;
use super::disk::Disk;
use super::identity::Identity;
use super::opening::{OpenError, segment_numbers};
use super::segment::Segment;
use super::walk::Walk;
use crate::checkpoint::Checkpoint;
use crate::ledger::Head;

/// What a ledger that can be read holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which ledger.
    pub identity: Identity,
    /// Where it ends.
    pub head: Head,
    /// How many files.
    pub segments: usize,
    /// How many checkpoints.
    pub checkpoints: usize,
    /// How many batches.
    pub batches: u64,
    /// The last write was cut short; nothing of it was acknowledged.
    pub has_torn_tail: bool,
}

/// Checks every bit of the ledger in `directory`. It may be in use: then the last write may look cut short.
pub fn verify(directory: &Path) -> Result<Report, OpenError> {
    verify_on(&Directory::at(directory))
}

fn verify_on(disk: &dyn Disk) -> Result<Report, OpenError> {
    let identity = Identity::read(disk)?.ok_or_else(|| OpenError::NoIdentity(disk.path("")))?;
    let anchors = check_checkpoints(disk, &identity)?;
    let checkpoints = anchors.len();
    let mut walk = Walk::new(identity.clone(), anchors, None);
    let mut has_torn_tail = false;
    for number in segment_numbers(disk)? {
        let name = Segment::file_name(number);
        let bytes = disk.read(&name)?.unwrap_or_default();
        let mut segment = Segment::read(&disk.path(&name), &bytes)?;
        walk.take(&mut segment)?;
        has_torn_tail = segment.is_torn;
    }
    let (head, segments, batches) = (walk.head, walk.segments.len(), walk.batches);
    Ok(Report { identity, head, segments, checkpoints, batches, has_torn_tail })
}

/// Checks every checkpoint whole, with its signature. Says where they are.
fn check_checkpoints(disk: &dyn Disk, identity: &Identity) -> Result<Vec<Head>, OpenError> {
    let mut heads = Vec::new();
    for seq in checkpoints::numbers(disk)? {
        let name = checkpoints::name(seq);
        let damaged = |reason| Damage { file: disk.path(&name), offset: 0, after: seq, reason };
        let checkpoint = Checkpoint::read(disk.read(&name)?.unwrap_or_default()).map_err(damaged)?;
        let head = checkpoint.head;
        if head.head.seq != seq || head.ledger != identity.ledger {
            return Err(damaged("the checkpoint is not the one that its name says").into());
        }
        checkpoint.verify().map_err(damaged)?;
        heads.push(head.head);
    }
    Ok(heads)
}
