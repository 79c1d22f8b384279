//! The ledger that is open for writing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::blanks::NotTaken;
use super::catalog::Catalog;
use super::checkpoints;
use super::disk::{DiskFile, is_no_space};
use super::identity::{Identity, this_machine};
use super::open_error::OpenError;
use super::opening::{CLEAN, Opening, begin_segment, clean_mark};
use super::reader::Reader;
use super::record;
use super::sector::SECTOR;
use super::segment::SegmentHead;
use super::upkeep::Upkeep;
use super::witness::{Witness, WitnessFile};
use crate::batch::{Batch, BatchBytes};
use crate::checkpoint::Checkpoint;
use crate::ledger::{AppendError, Head, Ledger, ReadError, Room, Seq};

/// How a ledger is kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// How large each file is.
    pub segment_size: u64,
    /// How many bytes are kept for the ends of leases when the disk is full.
    pub reserve: u64,
    /// The folder, outside of the data directory, in which to remember how far it had come.
    pub witness: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_size: 16 << 20, reserve: 64 << 20, witness: None }
    }
}

/// A ledger in one directory, open for writing.
pub struct EmbeddedLedger {
    catalog: Arc<Catalog>,
    options: Options,
    head: Head,
    current: Box<dyn DiskFile>,
    /// The segment that is written.
    segment: SegmentHead,
    /// Where the next record goes.
    offset: u64,
    witness: Option<WitnessFile>,
    /// A write or a sync failed: nobody knows what the disk holds, and this process must not write again.
    failed: bool,
    _lock: Box<dyn Send>,
}

impl EmbeddedLedger {
    /// Opens the ledger in `directory`, which is made if it is not there.
    pub fn open(directory: &Path, options: Options) -> Result<Self, OpenError> {
        Opening::begin(directory, options)?.finish()
    }

    pub(crate) fn new(
        catalog: Arc<Catalog>,
        options: Options,
        current: Box<dyn DiskFile>,
        offset: u64,
        witness: Option<WitnessFile>,
        lock: Box<dyn Send>,
    ) -> Self {
        let content = catalog.content();
        let segment = *content.segments.last().expect("an open ledger has a segment");
        let head = content.head;
        drop(content);
        Self { catalog, options, head, current, segment, offset, witness, failed: false, _lock: lock }
    }

    /// Which ledger this is.
    pub fn identity(&self) -> &Identity {
        &self.catalog.identity
    }

    /// Reads what is durable, beside the writer.
    pub fn reader(&self) -> Reader {
        Reader::new(self.catalog.clone())
    }

    /// Makes blank files and checkpoints and prunes, beside the writer.
    pub fn upkeep(&self) -> Upkeep {
        Upkeep::new(self.catalog.clone())
    }

    /// From now on the ledger belongs to this machine: the last step of putting a copy in the place of its original.
    pub fn settle_here(&self) -> io::Result<()> {
        let identity = Identity { machine: this_machine(), ..self.catalog.identity.clone() };
        identity.write(&*self.catalog.disk)
    }

    /// Ends in good order: the next start need not doubt the last record.
    pub fn close(self) -> io::Result<()> {
        if self.failed {
            return Ok(());
        }
        self.catalog.disk.replace(CLEAN, clean_mark(self.head).as_bytes())
    }

    /// Goes on in the next file, which was filled with zeros beforehand.
    fn rotate(&mut self) -> Result<(), AppendError> {
        let in_doubt = |source| AppendError::OutcomeUnknown { at: Seq(self.head.seq.0 + 1), source };
        let blank = match self.catalog.blanks.take() {
            Ok(blank) => blank,
            Err(NotTaken::NotMade(error)) => return Err(no_space_or_unavailable(error)),
            Err(NotTaken::InDoubt(error)) => {
                self.failed = true;
                return Err(in_doubt(error));
            }
        };
        let Identity { ledger, epoch, .. } = self.catalog.identity;
        let (number, size) = (self.segment.number + 1, self.options.segment_size);
        let head = SegmentHead { ledger, epoch, number, after: self.head, size };
        let begun = begin_segment(&*self.catalog.disk, blank, &head, &[]).map_err(in_doubt);
        self.failed |= begun.is_err();
        let file = begun?;
        (self.current, self.segment, self.offset) = (file, head, SECTOR as u64);
        self.catalog.content().segments.push(head);
        // The next blank file is made by the upkeep; without one, by the next rotation.
        self.catalog.tell();
        Ok(())
    }
}

impl Ledger for EmbeddedLedger {
    fn head(&self) -> Head {
        self.head
    }

    fn append_batch(&mut self, batch: &BatchBytes) -> Result<Head, AppendError> {
        if self.failed {
            return Err(AppendError::Unavailable(io::Error::other("an earlier write failed; start again")));
        }
        self.head.check_is_before(batch)?;
        if batch.is_empty() {
            return Ok(self.head);
        }
        let content = batch.as_slice();
        let most = usize::try_from(self.options.segment_size).unwrap_or(usize::MAX) - SECTOR;
        let (sectors, hash) = record::encode(content, self.head.hash)
            .filter(|(sectors, _)| sectors.len() <= most)
            .ok_or(AppendError::TooLarge { bytes: content.len(), most })?;
        // The segment's own size: the configured one may have changed since it was begun.
        if self.offset + sectors.len() as u64 > self.segment.size {
            self.rotate()?;
        }
        let written = self.current.write_at(&sectors, self.offset).and_then(|()| self.current.sync());
        if let Err(source) = written {
            // Never tried again: after a failed sync the system may say that all is well while it is not.
            self.failed = true;
            return Err(AppendError::OutcomeUnknown { at: batch.first(), source });
        }
        self.offset += sectors.len() as u64;
        self.head = Head { seq: batch.last(), hash };
        self.catalog.content().head = self.head;
        if let Some(file) = &self.witness {
            let Identity { ledger, epoch, .. } = self.catalog.identity;
            // What it says stays true if this fails; it only says less.
            let _ = file.write(&Witness { ledger, epoch, head: self.head });
        }
        Ok(self.head)
    }

    fn room(&self) -> Room {
        self.catalog.blanks.room(self.segment.size.saturating_sub(self.offset))
    }

    fn checkpoint(&self) -> Result<Option<Checkpoint>, ReadError> {
        Ok(checkpoints::find(&*self.catalog.disk, self.catalog.identity.ledger)?.newest)
    }

    fn read(&self, after: Seq) -> Box<dyn Iterator<Item = Result<Batch, ReadError>> + '_> {
        Box::new(self.reader().read(after))
    }
}

impl fmt::Debug for EmbeddedLedger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EmbeddedLedger({} at {:?})", self.catalog.disk.path("").display(), self.head)
    }
}

fn no_space_or_unavailable(error: io::Error) -> AppendError {
    if is_no_space(&error) { AppendError::NoSpace } else { AppendError::Unavailable(error) }
}
