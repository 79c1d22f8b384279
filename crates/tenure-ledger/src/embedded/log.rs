//! The ledger itself: open, append, read.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tenure_core::ledger::EventRecord;
use thiserror::Error;

use super::Damage;
use super::directory;
use super::identity::{Identity, this_machine};
use super::load::{Loaded, load};
use super::record;
use super::sector::SECTOR;
use super::segment::{Segment, SegmentHead};
use super::witness::{Witness, WitnessFile};
use crate::batch::Batch;
use crate::ledger::{AppendError, Head, Ledger, ReadError, Seq};

/// How a ledger is kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// How large each file is.
    pub segment_size: u64,
    /// Where, outside of the data directory, to remember how far it had come.
    pub witness: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_size: 16 << 20, witness: None }
    }
}

/// Why a ledger does not open. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process writes it.
    #[error("another process is using {}; stop it first, or choose another --data", .0.display())]
    Locked(PathBuf),
    /// Its bytes are not what was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// It is an older copy of itself.
    #[error(
        "the ledger ends at event {} but had come to {}: this is an older copy, and leases in it may be over or \
         held by others; if you restored it on purpose, run `tenure ledger restored`",
        found.0, witnessed.0
    )]
    Behind {
        /// Where it ends.
        found: Seq,
        /// Where it had ended.
        witnessed: Seq,
    },
    /// It was written on another machine.
    #[error(
        "the ledger belongs to another machine; if it was moved here and is no longer used there, run \
         `tenure ledger moved`"
    )]
    Foreign,
    /// There are segments and nothing says whose.
    #[error("{} holds segments but no identity; part of the ledger is missing", .0.display())]
    NoIdentity(PathBuf),
    /// A segment must hold its head and a record.
    #[error("a segment of {0} bytes is too small; it needs at least 4096, in whole sectors of 512")]
    SegmentSize(u64),
    /// The system said no.
    #[error("the ledger cannot be opened")]
    Io(#[from] io::Error),
}

/// A ledger in one directory, open for writing.
#[derive(Debug)]
pub struct EmbeddedLedger {
    directory: PathBuf,
    identity: Identity,
    options: Options,
    segments: Vec<SegmentHead>,
    head: Head,
    current: File,
    /// Where the next record goes.
    offset: u64,
    witness: Option<WitnessFile>,
    /// A write or a sync failed: nobody knows what the disk holds, and this process must not write again.
    failed: bool,
    _lock: File,
}

impl EmbeddedLedger {
    /// Opens the ledger in `directory`, which is made if it is not there.
    pub fn open(directory: &Path, options: Options) -> Result<Self, OpenError> {
        if options.segment_size < 4_096 || !options.segment_size.is_multiple_of(SECTOR as u64) {
            return Err(OpenError::SegmentSize(options.segment_size));
        }
        directory::make(directory)?;
        let lock = directory::lock(directory)?.ok_or_else(|| OpenError::Locked(directory.to_owned()))?;
        let identity = identity_of(directory)?;
        let witness = options.witness.as_deref().map(WitnessFile::open).transpose()?;
        let witnessed = witness.as_ref().map(WitnessFile::read).transpose()?.flatten();
        let witnessed = witnessed.filter(|witness| witness.ledger == identity.ledger);
        let loaded = load(directory, &identity, witnessed.map_or(Head::default(), |witness| witness.head))?;
        if let Some(witness) =
            witnessed.filter(|witness| !loaded.met_witness || witness.epoch > identity.epoch)
        {
            return Err(OpenError::Behind { found: loaded.head.seq, witnessed: witness.head.seq });
        }
        identity.write(directory)?;
        Self::go_on(directory, identity, options, loaded, witness, lock)
    }

    fn go_on(
        directory: &Path,
        identity: Identity,
        options: Options,
        loaded: Loaded,
        witness: Option<WitnessFile>,
        lock: File,
    ) -> Result<Self, OpenError> {
        let was_clean =
            fs::read_to_string(directory.join("clean")).is_ok_and(|text| text == clean_mark(loaded.head));
        directory::remove(directory, "clean")?;
        let Loaded { mut segments, last, head, .. } = loaded;
        let (current, offset) = match last {
            Some(last) if was_clean || is_untouched(&last) => {
                (OpenOptions::new().write(true).open(&last.path)?, last.end)
            }
            last => {
                let (segment, file, offset) =
                    begin_after_unclean_end(directory, &identity, &options, last.as_ref())?;
                segments.push(segment);
                (file, offset)
            }
        };
        let ledger = Self {
            directory: directory.to_owned(),
            identity,
            options,
            segments,
            head,
            current,
            offset,
            witness,
            failed: false,
            _lock: lock,
        };
        ledger.make_spare()?;
        Ok(ledger)
    }

    /// Which ledger this is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Ends in good order: the next start need not doubt the last record.
    pub fn close(self) -> io::Result<()> {
        if self.failed {
            return Ok(());
        }
        directory::replace(&self.directory, "clean", clean_mark(self.head).as_bytes())
    }

    /// Goes on in the next file, which was filled with zeros beforehand.
    fn rotate(&mut self) -> Result<(), AppendError> {
        self.make_spare().map_err(no_space_or_unavailable)?;
        let number = self.segments.last().map_or(0, |segment| segment.number) + 1;
        let head = self.segment_head(number, self.head);
        let file = begin(&self.directory, &head, &[]).map_err(|source| {
            self.failed = true;
            AppendError::OutcomeUnknown { at: Seq(self.head.seq.0 + 1), source }
        })?;
        (self.current, self.offset) = (file, SECTOR as u64);
        self.segments.push(head);
        // The next one is made when there is time; without room for it, the next rotation says so.
        let _ = self.make_spare();
        Ok(())
    }

    fn segment_head(&self, number: u64, after: Head) -> SegmentHead {
        let Identity { ledger, epoch, .. } = self.identity;
        SegmentHead { ledger, epoch, number, after, size: self.options.segment_size }
    }

    fn make_spare(&self) -> io::Result<()> {
        make_spare(&self.directory, self.options.segment_size)
    }
}

impl Ledger for EmbeddedLedger {
    fn head(&self) -> Head {
        self.head
    }

    fn append(&mut self, expected: Seq, records: &[EventRecord], seal: &[u8]) -> Result<Head, AppendError> {
        if self.failed {
            return Err(AppendError::Unavailable(io::Error::other("an earlier write failed; start again")));
        }
        if expected != self.head.seq {
            return Err(AppendError::Overtaken { expected, found: self.head.seq });
        }
        if records.is_empty() {
            return Ok(self.head);
        }
        let first = Seq(expected.0 + 1);
        let content = Batch::encode(first, records, seal);
        let most = usize::try_from(self.options.segment_size).unwrap_or(usize::MAX) - SECTOR;
        let (sectors, hash) = record::encode(&content, self.head.hash)
            .filter(|(sectors, _)| sectors.len() <= most)
            .ok_or(AppendError::TooLarge { bytes: content.len(), most })?;
        // The segment's own size: the configured one may have changed since it was begun.
        let size = self.segments.last().map_or(0, |segment| segment.size);
        if self.offset + sectors.len() as u64 > size {
            self.rotate()?;
        }
        let written =
            self.current.write_all_at(&sectors, self.offset).and_then(|()| self.current.sync_data());
        if let Err(source) = written {
            // Never tried again: after a failed sync the system may say that all is well while it is not.
            self.failed = true;
            return Err(AppendError::OutcomeUnknown { at: first, source });
        }
        self.offset += sectors.len() as u64;
        self.head = Head { seq: Seq(expected.0 + records.len() as u64), hash };
        if let Some(file) = &self.witness {
            let Identity { ledger, epoch, .. } = self.identity;
            // What it says stays true if this fails; it only says less.
            let _ = file.write(&Witness { ledger, epoch, head: self.head });
        }
        Ok(self.head)
    }

    fn read(&self, after: Seq) -> Box<dyn Iterator<Item = Result<Batch, ReadError>> + '_> {
        // The last segment that begins at or before `after` holds what comes next.
        let from = self.segments.partition_point(|segment| segment.after.seq <= after).saturating_sub(1);
        let batches = (from..self.segments.len()).flat_map(move |index| self.batches_of(index));
        Box::new(batches.filter(move |batch| batch.as_ref().map_or(true, |batch| batch.last() > after)))
    }
}

impl EmbeddedLedger {
    /// The batches of a segment that no later segment begins with a copy of.
    fn batches_of(&self, index: usize) -> Vec<Result<Batch, ReadError>> {
        let path = self.directory.join(Segment::file_name(self.segments[index].number));
        let until = self.segments.get(index + 1).map_or(self.head.seq, |next| next.after.seq);
        let segment =
            fs::read(&path).map_err(ReadError::from).and_then(|bytes| Ok(Segment::read(&path, &bytes)?));
        match segment {
            Ok(segment) => {
                segment.batches.into_iter().filter(|batch| batch.last() <= until).map(Ok).collect()
            }
            Err(error) => vec![Err(error)],
        }
    }
}

/// The identity of the ledger in a directory, or a new one for an empty directory.
fn identity_of(directory: &Path) -> Result<Identity, OpenError> {
    match Identity::read(directory)? {
        Some(identity) if identity.machine == this_machine() => Ok(identity),
        Some(_) => Err(OpenError::Foreign),
        None if directory::segments(directory)?.is_empty() => Ok(Identity::new(this_machine())?),
        None => Err(OpenError::NoIdentity(directory.to_owned())),
    }
}

/// Nothing was ever written behind the head of this segment, so nothing in it can be in doubt.
fn is_untouched(segment: &Segment) -> bool {
    segment.batches.is_empty() && !segment.is_torn
}

fn begin_after_unclean_end(
    directory: &Path,
    identity: &Identity,
    options: &Options,
    last: Option<&Segment>,
) -> io::Result<(SegmentHead, File, u64)> {
    let number = last.map_or(1, |last| last.head.number + 1);
    let after = last.map_or(Head::default(), Segment::before_last);
    let copy = last
        .and_then(|last| last.last_content.as_ref())
        .and_then(|content| record::encode(content, after.hash));
    let copy = copy.map(|(sectors, _)| sectors).unwrap_or_default();
    // A copy must fit, also when the configured size has become smaller.
    let size = options.segment_size.max((SECTOR + copy.len()) as u64);
    let Identity { ledger, epoch, .. } = *identity;
    let head = SegmentHead { ledger, epoch, number, after, size };
    make_spare(directory, size)?;
    let file = begin(directory, &head, &copy)?;
    Ok((head, file, (SECTOR + copy.len()) as u64))
}

/// Makes a segment of the spare file, with everything in it before it gets its name.
fn begin(directory: &Path, head: &SegmentHead, records: &[u8]) -> io::Result<File> {
    let spare = directory.join("spare");
    let file = OpenOptions::new().write(true).open(&spare)?;
    file.write_all_at(&head.encode(), 0)?;
    file.write_all_at(records, SECTOR as u64)?;
    file.sync_all()?;
    fs::rename(&spare, directory.join(Segment::file_name(head.number)))?;
    directory::sync(directory)?;
    Ok(file)
}

fn make_spare(directory: &Path, size: u64) -> io::Result<()> {
    let spare = directory.join("spare");
    // One that was begun and not named is not blank any more.
    let is_blank = fs::metadata(&spare).is_ok_and(|found| found.len() == size)
        && fs::read(&spare).is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0));
    if is_blank {
        return Ok(());
    }
    let unfinished = directory.join("spare.new");
    directory::blank_file(&unfinished, size)?;
    fs::rename(&unfinished, &spare)
}

fn clean_mark(head: Head) -> String {
    format!("{} {}\n", head.seq.0, head.hash)
}

fn no_space_or_unavailable(error: io::Error) -> AppendError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => AppendError::NoSpace,
        _ => AppendError::Unavailable(error),
    }
}
