//! Segments and checkpoints, read without the lock and without a repair.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::chain_verifier::ChainVerifier;
use super::checkpoint_files;
use super::directory_disk::DirectoryDisk;
use super::disk::Disk;
use super::identity::LedgerIdentity;
use super::recovery::segment_numbers;
use super::segment::Segment;
use crate::batch::Batch;
use crate::checkpoint::Checkpoint;
use crate::error::{Damage, OpenError};
use crate::ledger::{Head, LedgerId, Seq};
use crate::read_only::{BatchReader, LocatedBatch, ReadOnlyLedger, VerificationReport};

/// How often what a writer may be changing is read again, and how long is waited in between.
const TRIES: usize = 10;
const RETRY_DELAY: Duration = Duration::from_millis(20);

pub(crate) struct EmbeddedReadOnlyLedger {
    disk: DirectoryDisk,
    identity: LedgerIdentity,
    /// Where the checkpoints are, oldest first.
    checkpoints: Vec<Head>,
    oldest: Option<Checkpoint>,
    segments: Vec<u64>,
    has_active_writer: bool,
}

/// The ledger on a disk as its own file names it. There need be nothing else of it.
pub(crate) fn read_identity(disk: &dyn Disk) -> Result<LedgerIdentity, OpenError> {
    match LedgerIdentity::read(disk)? {
        Some(identity) => Ok(identity),
        None if segment_numbers(disk).unwrap_or_default().is_empty() => {
            Err(OpenError::NoLedger(disk.path("")))
        }
        None => Err(OpenError::NoIdentity(disk.path(""))),
    }
}

impl EmbeddedReadOnlyLedger {
    /// Looks at the ledger in `directory`, and checks every checkpoint whole, with its signature.
    pub(crate) fn open(directory: &Path) -> Result<EmbeddedReadOnlyLedger, OpenError> {
        let disk = DirectoryDisk::at(directory);
        let identity = read_identity(&disk)?;
        for _ in 0..TRIES {
            let numbers = checkpoint_files::list(&disk)?;
            // Before the segments: those that are listed later hold what a checkpoint says.
            let (checkpoints, oldest) = check_checkpoints(&disk, &identity, &numbers)?;
            let segments = segment_numbers(&disk)?;
            // Only behind a new checkpoint can segments have gone that the oldest of these needs.
            if checkpoint_files::list(&disk)? == numbers {
                return Ok(EmbeddedReadOnlyLedger {
                    disk,
                    identity,
                    checkpoints,
                    oldest,
                    segments,
                    has_active_writer: false,
                });
            }
        }
        Err(OpenError::Pruned(disk.path("")))
    }

    fn read(&self, number: u64) -> Result<Segment, OpenError> {
        let name = Segment::file_name(number);
        let path = self.disk.path(&name);
        let is_last = self.segments.last() == Some(&number);
        let mut remaining_tries = if self.has_active_writer && is_last { TRIES } else { 0 };
        loop {
            let disk: &dyn Disk = &self.disk;
            let bytes = disk.read(&name)?.ok_or_else(|| OpenError::Pruned(path.clone()))?;
            match Segment::read(&path, &bytes) {
                Ok(segment) if remaining_tries == 0 || !segment.is_torn => return Ok(segment),
                Err(damage) if remaining_tries == 0 => return Err(damage.into()),
                Ok(_) | Err(_) => {}
            }
            remaining_tries -= 1;
            thread::park_timeout(RETRY_DELAY);
        }
    }
}

impl ReadOnlyLedger for EmbeddedReadOnlyLedger {
    fn tolerate_active_writer(mut self: Box<Self>) -> Box<dyn ReadOnlyLedger> {
        self.has_active_writer = true;
        self
    }

    fn ledger(&self) -> LedgerId {
        self.identity.ledger
    }

    fn oldest_checkpoint(&self) -> Option<&Checkpoint> {
        // Segments are numbered from 1 and pruned from the front.
        self.oldest.as_ref().filter(|_| self.segments.first() != Some(&1))
    }

    fn batches(&self) -> Box<dyn BatchReader + '_> {
        Box::new(SegmentBatches {
            archive: self,
            walk: ChainVerifier::new(self.identity.clone(), self.checkpoints.clone(), None),
            unread: self.segments.iter().copied().collect(),
            batches: VecDeque::new(),
            file: PathBuf::new(),
            first: None,
            has_torn_tail: false,
        })
    }
}

struct SegmentBatches<'a> {
    archive: &'a EmbeddedReadOnlyLedger,
    walk: ChainVerifier,
    /// The segments that were not read yet.
    unread: VecDeque<u64>,
    batches: VecDeque<(u64, Batch)>,
    file: PathBuf,
    first: Option<Head>,
    has_torn_tail: bool,
}

impl BatchReader for SegmentBatches<'_> {
    fn next_batch(&mut self) -> Result<Option<LocatedBatch>, OpenError> {
        loop {
            if let Some((offset, batch)) = self.batches.pop_front() {
                return Ok(Some(LocatedBatch { batch, file: self.file.clone(), offset }));
            }
            let Some(number) = self.unread.pop_front() else {
                self.check_end()?;
                return Ok(None);
            };
            let mut segment = self.archive.read(number)?;
            self.first.get_or_insert(segment.header.after);
            let batches = self.walk.verify_segment(&mut segment)?;
            // Where the segment begins with a copy of a record, that one is not handed out again.
            let copies = segment.offsets.len() - batches.len();
            self.batches = segment.offsets.iter().skip(copies).copied().zip(batches).collect();
            self.file = segment.path;
            self.has_torn_tail = segment.is_torn;
        }
    }

    fn progress(&self) -> (usize, usize) {
        let total = self.archive.segments.len();
        (total - self.unread.len(), total)
    }

    fn pruned_through(&self) -> Option<Seq> {
        self.first.map(|head| head.seq)
    }

    fn finish(mut self: Box<Self>) -> Result<VerificationReport, OpenError> {
        while self.next_batch()?.is_some() {}
        let LedgerIdentity { ledger, epoch, version: form, .. } = self.archive.identity;
        Ok(VerificationReport {
            ledger,
            epoch,
            form,
            after: self.first.unwrap_or_default().seq,
            head: self.walk.head,
            segments: self.walk.segments.len(),
            checkpoints: self.archive.checkpoints.len(),
            batches: self.walk.batches,
            has_torn_tail: self.has_torn_tail,
        })
    }
}

impl SegmentBatches<'_> {
    fn check_end(&self) -> Result<(), Damage> {
        let Some(missed) = self.walk.unreached_checkpoint_head() else { return Ok(()) };
        let file = self.archive.disk.path(&checkpoint_files::file_name(missed.seq));
        let (after, reason) = (self.walk.head.seq, "the checkpoint is ahead of the ledger");
        Err(Damage { file, offset: 0, after, reason })
    }
}

/// Reads every checkpoint whole, with its signature. Says where they are, and keeps the oldest.
fn check_checkpoints(
    disk: &dyn Disk,
    identity: &LedgerIdentity,
    numbers: &[Seq],
) -> Result<(Vec<Head>, Option<Checkpoint>), OpenError> {
    let (mut heads, mut oldest) = (Vec::new(), None);
    for &seq in numbers {
        let name = checkpoint_files::file_name(seq);
        // A newer one may have taken its place since, which will be noticed.
        let Some(bytes) = disk.read(&name)? else { continue };
        let damaged = |reason| Damage { file: disk.path(&name), offset: 0, after: seq, reason };
        let checkpoint = Checkpoint::read(bytes).map_err(damaged)?;
        let head = checkpoint.header;
        if head.head.seq != seq || head.ledger != identity.ledger {
            return Err(damaged("the checkpoint is not the one that its name says").into());
        }
        checkpoint.verify().map_err(damaged)?;
        heads.push(head.head);
        oldest.get_or_insert(checkpoint);
    }
    Ok((heads, oldest))
}
