//! Opens a ledger: looks at every record after the newest checkpoint, and hands out each batch on the way.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::chain_verifier::ChainVerifier;
use super::checkpoint_files::{self, CheckpointScan};
use super::directory_disk::DirectoryDisk;
use super::disk::{Disk, DiskFile, is_storage_full};
use super::file_sizes::FileSizes;
use super::identity::{LedgerIdentity, NO_MACHINE, this_machine};
use super::ledger::{EmbeddedLedger, LedgerOptions};
use super::reader::{SegmentIndex, SegmentIndexState};
use super::record;
use super::record::SECTOR;
use super::segment::{Segment, SegmentHeader, SegmentReader};
use super::segment_pool::SegmentPool;
use super::witness::{Witness, WitnessFile};
use crate::batch::Batch;
use crate::checkpoint::Checkpoint;
use crate::error::{Damage, OpenError};
use crate::ledger::{Head, Ledger, LedgerId, LedgerRecovery, Seq};

/// What a ledger is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenPurpose {
    /// To go on with it.
    ReadWrite,
    /// To put a copy in the place of its original.
    Restore,
}

/// A ledger that is being opened.
pub struct EmbeddedRecovery {
    disk: Arc<dyn Disk>,
    lock: Box<dyn Send>,
    identity: LedgerIdentity,
    options: LedgerOptions,
    witness: Option<WitnessFile>,
    witnessed: Option<Witness>,
    checkpoint: Option<Checkpoint>,
    checkpoints: Vec<Head>,
    warnings: Vec<Damage>,
    verifier: ChainVerifier,
    /// The segments that were not looked at yet.
    unread: SegmentReader,
    /// The last one that was.
    last_segment: Option<Segment>,
    batches: VecDeque<Batch>,
}

impl EmbeddedRecovery {
    /// Begins to open the ledger in `directory`, which is made if it is not there.
    pub fn begin(directory: &Path, options: LedgerOptions) -> Result<EmbeddedRecovery, OpenError> {
        let cannot = |source| OpenError::Directory { path: directory.to_owned(), source };
        Self::begin_on(Arc::new(DirectoryDisk::open_or_create(directory).map_err(cannot)?), options)
    }

    /// Begins to open the ledger on `disk`.
    pub fn begin_on(disk: Arc<dyn Disk>, options: LedgerOptions) -> Result<EmbeddedRecovery, OpenError> {
        Self::begin_for(disk, options, OpenPurpose::ReadWrite)
    }

    /// Begins to open a copy in `directory` that is to take the place of its original: in a new epoch, whatever the
    /// witness says. Until [`EmbeddedLedger::close`] it can be opened in no other way.
    pub fn begin_restore(directory: &Path, options: LedgerOptions) -> Result<EmbeddedRecovery, OpenError> {
        Self::begin_for(Arc::new(DirectoryDisk::at(directory)), options, OpenPurpose::Restore)
    }

    fn begin_for(
        disk: Arc<dyn Disk>,
        options: LedgerOptions,
        purpose: OpenPurpose,
    ) -> Result<EmbeddedRecovery, OpenError> {
        if options.segment_size < 4_096 || !options.segment_size.is_multiple_of(SECTOR as u64) {
            return Err(OpenError::SegmentSize(options.segment_size));
        }
        let lock = disk.lock()?.ok_or_else(|| OpenError::Locked(disk.path("")))?;
        let mut identity = load_or_create_identity(&*disk, purpose)?;
        let witness = match &options.witness {
            Some(folder) => {
                Some(WitnessFile::open(folder, identity.ledger)?.ok_or(OpenError::OpenElsewhere)?)
            }
            None => None,
        };
        let witnessed = witness.as_ref().map(WitnessFile::read).transpose()?.flatten();
        let mut witnessed = witnessed.filter(|witness| witness.ledger == identity.ledger);
        if purpose == OpenPurpose::Restore {
            let latest = witnessed.map_or(0, |witness| witness.epoch).max(identity.epoch);
            identity = LedgerIdentity { epoch: latest + 1, machine: NO_MACHINE, ..identity };
            witnessed = None;
        }
        let CheckpointScan { newest: checkpoint, heads: checkpoints, damaged: warnings } =
            checkpoint_files::scan(&*disk, identity.ledger, Seq(u64::MAX))?;
        let anchors = checkpoint.iter().map(|checkpoint| checkpoint.header.head).collect();
        let mut walk = ChainVerifier::new(identity.clone(), anchors, witnessed.map(|witness| witness.head));
        let ahead =
            SegmentReader::new(disk.clone(), segments_to_read(&*disk, checkpoint.as_ref(), &mut walk)?);
        let (last, batches) = (None, VecDeque::new());
        Ok(EmbeddedRecovery {
            disk,
            lock,
            identity,
            options,
            witness,
            witnessed,
            checkpoint,
            checkpoints,
            warnings,
            verifier: walk,
            unread: ahead,
            last_segment: last,
            batches,
        })
    }

    /// Opens the ledger for writing, once all batches were looked at.
    pub fn finish(mut self) -> Result<EmbeddedLedger, OpenError> {
        while self.next_batch()?.is_some() {}
        let head = self.verifier.head;
        if let Some(missed) = self.verifier.unreached_checkpoint_head() {
            let (file, after) = (self.disk.path(&checkpoint_files::file_name(missed.seq)), head.seq);
            return Err(
                Damage { file, offset: 0, after, reason: "the checkpoint is ahead of the ledger" }.into()
            );
        }
        let is_behind = |witness: &Witness| witness.epoch > self.identity.epoch;
        if let Some(witness) =
            self.witnessed.filter(|witness| !self.verifier.has_reached_witness() || is_behind(witness))
        {
            return Err(OpenError::OutdatedCopy { found: head.seq, witnessed: witness.head.seq });
        }
        // Only if it is new: a ledger on a full disk must open.
        if LedgerIdentity::read(&*self.disk)?.as_ref() != Some(&self.identity) {
            self.identity.write(&*self.disk)?;
        }
        self.open_for_append(head)
    }

    fn open_for_append(self, head: Head) -> Result<EmbeddedLedger, OpenError> {
        let EmbeddedRecovery {
            disk,
            lock,
            identity,
            options,
            witness,
            checkpoints,
            verifier: walk,
            last_segment: last,
            ..
        } = self;
        let was_clean = disk
            .read(CLEAN_SHUTDOWN_FILE)?
            .is_some_and(|text| text == clean_shutdown_marker(head).as_bytes());
        disk.remove(CLEAN_SHUTDOWN_FILE)?;
        // Always: a process that was killed may have left names that are not durable, and what is acknowledged from
        // here on rests on them.
        disk.sync()?;
        let mut segments = walk.segments;
        let last_size = segments.last().map(|segment| segment.size);
        let segment_pool = SegmentPool::scan(disk.clone(), FileSizes::new(&options), last_size)?;
        let (file, offset) = match last {
            Some(last) if was_clean || is_untouched(&last) || walk.ends_with_copied_record => {
                (disk.open(&Segment::file_name(last.header.number))?, last.end)
            }
            last => {
                let (segment, file, offset) =
                    begin_after_unclean_shutdown(&*disk, &segment_pool, &identity, last.as_ref())
                        .map_err(|error| open_error(&*disk, error))?;
                segments.push(segment);
                (file, offset)
            }
        };
        let state = SegmentIndexState { segments, head, checkpoints, has_work: true };
        let index = Arc::new(SegmentIndex::new(disk, identity, segment_pool, state));
        Ok(EmbeddedLedger::new(index, file, offset, witness, lock))
    }
}

impl LedgerRecovery for EmbeddedRecovery {
    fn ledger(&self) -> LedgerId {
        self.identity.ledger
    }

    fn warnings(&self) -> &[Damage] {
        &self.warnings
    }

    fn take_checkpoint(&mut self) -> Option<Checkpoint> {
        self.checkpoint.take()
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, OpenError> {
        let after = self.checkpoints.last().map_or(Seq(0), |head| head.seq);
        loop {
            match self.batches.pop_front() {
                Some(batch) if batch.last() <= after => {}
                Some(batch) => return Ok(Some(batch)),
                None => {
                    let Some(mut segment) = self.unread.next()? else { return Ok(None) };
                    self.batches = self.verifier.verify_segment(&mut segment)?.into();
                    self.last_segment = Some(segment);
                }
            }
        }
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Ledger>, OpenError> {
        Ok(Box::new(EmbeddedRecovery::finish(*self)?))
    }
}

/// There only after an orderly end.
pub(crate) const CLEAN_SHUTDOWN_FILE: &str = "clean";

pub(crate) fn clean_shutdown_marker(head: Head) -> String {
    format!("{} {}\n", head.seq.0, head.hash)
}

/// The identity of the ledger on a disk, or a new one for an empty disk.
fn load_or_create_identity(disk: &dyn Disk, purpose: OpenPurpose) -> Result<LedgerIdentity, OpenError> {
    match LedgerIdentity::read(disk)? {
        Some(identity) if purpose == OpenPurpose::Restore => Ok(identity),
        Some(identity) if identity.machine == this_machine() => Ok(identity),
        Some(identity) if identity.has_no_machine() => Err(OpenError::Copy(disk.path(""))),
        Some(_) => Err(OpenError::OtherMachine),
        None if purpose == OpenPurpose::ReadWrite && segment_numbers(disk)?.is_empty() => {
            Ok(LedgerIdentity::new(this_machine())?)
        }
        None => Err(OpenError::NoIdentity(disk.path(""))),
    }
}

/// The numbers of the segments on a disk, in order.
pub(crate) fn segment_numbers(disk: &dyn Disk) -> io::Result<Vec<u64>> {
    let mut numbers: Vec<u64> =
        disk.list()?.iter().filter_map(|name| Segment::parse_file_name(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The segments to read: those behind the checkpoint, and the one that it stands in. Of the others only the first
/// sector is looked at; `tenure verify` reads them all.
fn segments_to_read(
    disk: &dyn Disk,
    checkpoint: Option<&Checkpoint>,
    walk: &mut ChainVerifier,
) -> Result<VecDeque<String>, OpenError> {
    let names: Vec<String> = segment_numbers(disk)?.into_iter().map(Segment::file_name).collect();
    let Some(checkpoint) = checkpoint else { return Ok(names.into()) };
    let mut heads = Vec::new();
    for name in &names {
        let first = disk.read_at(name, 0, SECTOR)?.unwrap_or_default();
        let head = SegmentHeader::parse(&first).map_err(|reason| Damage {
            file: disk.path(name),
            offset: 0,
            after: Seq(0),
            reason,
        })?;
        heads.push(head);
    }
    let from = heads.partition_point(|head| head.after.seq <= checkpoint.header.head.seq).saturating_sub(1);
    heads[..from].iter().for_each(|head| walk.skip_segment(*head));
    Ok(names.into_iter().skip(from).collect())
}

/// Nothing was ever written behind the head of this segment, so nothing in it can be in doubt.
fn is_untouched(segment: &Segment) -> bool {
    segment.last == segment.header.after && !segment.is_torn
}

fn open_error(disk: &dyn Disk, source: io::Error) -> OpenError {
    if is_storage_full(&source) { OpenError::NoSpace { path: disk.path(""), source } } else { source.into() }
}

fn begin_after_unclean_shutdown(
    disk: &dyn Disk,
    segment_pool: &SegmentPool,
    identity: &LedgerIdentity,
    last: Option<&Segment>,
) -> io::Result<(SegmentHeader, Box<dyn DiskFile>, u64)> {
    let number = last.map_or(1, |last| last.header.number + 1);
    let after = last.map_or(Head::default(), |last| last.before_last);
    let copy = last
        .and_then(|last| last.last_content.as_ref())
        .and_then(|content| record::encode(content, after.hash));
    let copy = copy.map(|(sectors, _)| sectors).unwrap_or_default();
    // A copy must fit, also when the configured size has become smaller.
    let blank = segment_pool.take((SECTOR + copy.len()) as u64)?;
    let LedgerIdentity { ledger, epoch, .. } = *identity;
    let head = SegmentHeader { ledger, epoch, number, after, size: blank.size };
    let file = create_segment(disk, blank.name, &head, &copy)?;
    Ok((head, file, (SECTOR + copy.len()) as u64))
}

/// Makes a segment of a blank file, with everything in it before it gets its name.
pub(crate) fn create_segment(
    disk: &dyn Disk,
    blank: &str,
    head: &SegmentHeader,
    records: &[u8],
) -> io::Result<Box<dyn DiskFile>> {
    let file = disk.open(blank)?;
    file.write_at(&head.encode(), 0)?;
    if !records.is_empty() {
        file.write_at(records, SECTOR as u64)?;
    }
    file.sync()?;
    disk.rename(blank, &Segment::file_name(head.number))?;
    disk.sync()?;
    Ok(file)
}
