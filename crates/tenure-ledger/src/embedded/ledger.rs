//! The ledger that is open for writing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use super::disk::{DiskFile, is_storage_full};
use super::identity::{LedgerIdentity, this_machine};
use super::maintenance::EmbeddedMaintenance;
use super::reader::{EmbeddedReader, SegmentIndex};
use super::record;
use super::record::SECTOR;
use super::recovery::{CLEAN_SHUTDOWN_FILE, EmbeddedRecovery, clean_shutdown_marker, create_segment};
use super::segment::SegmentHeader;
use super::segment_pool::TakeError;
use super::witness::{Witness, WitnessFile};
use crate::batch::BatchBytes;
use crate::error::{AppendError, OpenError};
use crate::ledger::{Head, Ledger, LedgerMaintenance, LedgerReader, Seq, SpaceLevel};

/// How a ledger is kept.
#[derive(Debug, Clone)]
pub struct LedgerOptions {
    /// The largest size of a segment. The first has 1 MiB, or this if it is less, and each has twice the size of the
    /// one before.
    pub segment_size: u64,
    /// How many bytes are kept for the ends of leases when the disk is full. `None`: it grows with the number of
    /// leases and waiters, from 4 MiB to 64 MiB.
    pub reserve: Option<u64>,
    /// The folder, outside of the data directory, in which to remember how far it had come.
    pub witness: Option<PathBuf>,
}

impl Default for LedgerOptions {
    fn default() -> Self {
        Self { segment_size: 16 << 20, reserve: None, witness: None }
    }
}

/// A ledger in one directory, open for writing.
pub struct EmbeddedLedger {
    index: Arc<SegmentIndex>,
    head: Head,
    current: Box<dyn DiskFile>,
    /// The segment that is written.
    segment: SegmentHeader,
    /// Where the next record goes.
    offset: u64,
    witness: Option<WitnessFile>,
    /// A write or a sync failed: nobody knows what the disk holds, and this process must not write again.
    failed: bool,
    _lock: Box<dyn Send>,
}

impl EmbeddedLedger {
    /// Opens the ledger in `directory`, which is made if it is not there.
    pub fn open(directory: &Path, options: LedgerOptions) -> Result<Self, OpenError> {
        EmbeddedRecovery::begin(directory, options)?.finish()
    }

    pub(crate) fn new(
        index: Arc<SegmentIndex>,
        current: Box<dyn DiskFile>,
        offset: u64,
        witness: Option<WitnessFile>,
        lock: Box<dyn Send>,
    ) -> Self {
        let content = index.state();
        let segment = *content.segments.last().expect("an open ledger has a segment");
        let head = content.head;
        drop(content);
        Self { index, head, current, segment, offset, witness, failed: false, _lock: lock }
    }

    /// Ends without a doubt about the last record for the next start. A restored ledger belongs to this machine from
    /// now on.
    pub fn close(self) -> io::Result<()> {
        if self.failed {
            return Ok(());
        }
        if self.index.identity.has_no_machine() {
            let identity = LedgerIdentity { machine: this_machine(), ..self.index.identity.clone() };
            identity.write(&*self.index.disk)?;
        }
        self.index.disk.replace(CLEAN_SHUTDOWN_FILE, clean_shutdown_marker(self.head).as_bytes())
    }

    /// Goes on in the next file, which was filled with zeros beforehand, with a record of so many bytes.
    fn rotate(&mut self, record_bytes: usize) -> Result<(), AppendError> {
        let in_doubt = |source| AppendError::OutcomeUnknown { at: Seq(self.head.seq.0 + 1), source };
        let blank = match self.index.pool.take((SECTOR + record_bytes) as u64) {
            Ok(blank) => blank,
            Err(TakeError::NotCreated(error)) => return Err(no_space_or_unavailable(error)),
            Err(TakeError::InDoubt(error)) => {
                self.failed = true;
                return Err(in_doubt(error));
            }
        };
        let LedgerIdentity { ledger, epoch, .. } = self.index.identity;
        let (number, size) = (self.segment.number + 1, blank.size);
        let head = SegmentHeader { ledger, epoch, number, after: self.head, size };
        let file_result = create_segment(&*self.index.disk, blank.name, &head, &[]).map_err(in_doubt);
        self.failed |= file_result.is_err();
        let file = file_result?;
        (self.current, self.segment, self.offset) = (file, head, SECTOR as u64);
        self.index.state().segments.push(head);
        // The next blank file is made by the upkeep; without one, by the next rotation.
        self.index.wake_maintenance();
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
        let max_bytes = usize::try_from(self.index.pool.sizes.max).unwrap_or(usize::MAX) - SECTOR;
        let (sectors, hash) = record::encode(content, self.head.hash)
            .filter(|(sectors, _)| sectors.len() <= max_bytes)
            .ok_or(AppendError::TooLarge { bytes: content.len(), max_bytes })?;
        // The segment's own size: each has another.
        if self.offset + sectors.len() as u64 > self.segment.size {
            self.rotate(sectors.len())?;
        }
        let written = self.current.write_at(&sectors, self.offset).and_then(|()| self.current.sync());
        if let Err(source) = written {
            // Never tried again: after a failed sync the system may say that all is well while it is not.
            self.failed = true;
            return Err(AppendError::OutcomeUnknown { at: batch.first(), source });
        }
        self.offset += sectors.len() as u64;
        self.head = Head { seq: batch.last(), hash };
        self.index.state().head = self.head;
        if let Some(file) = &self.witness {
            let LedgerIdentity { ledger, epoch, .. } = self.index.identity;
            // What it says stays true if this fails; it only says less.
            let _ = file.write(&Witness { ledger, epoch, head: self.head });
        }
        Ok(self.head)
    }

    fn space_level(&self, live: usize) -> SpaceLevel {
        if self.index.pool.plan_reserve(live) {
            self.index.wake_maintenance();
        }
        self.index.pool.space_level(self.segment.size.saturating_sub(self.offset), live)
    }

    /// A quarter of the largest segment, and half of the smallest file of the reserve: the registrar estimates the size
    /// of a batch, and one above the estimate must fit too.
    fn max_batch_bytes(&self) -> u64 {
        let sizes = self.index.pool.sizes;
        (sizes.max / 4).min(sizes.min / 2)
    }

    fn reader(&self) -> Arc<dyn LedgerReader> {
        Arc::new(EmbeddedReader(self.index.clone()))
    }

    fn maintenance(&self) -> Arc<dyn LedgerMaintenance> {
        Arc::new(EmbeddedMaintenance(self.index.clone()))
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        EmbeddedLedger::close(*self)
    }
}

impl fmt::Debug for EmbeddedLedger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EmbeddedLedger({} at {:?})", self.index.disk.path("").display(), self.head)
    }
}

fn no_space_or_unavailable(error: io::Error) -> AppendError {
    if is_storage_full(&error) { AppendError::NoSpace } else { AppendError::Unavailable(error) }
}
