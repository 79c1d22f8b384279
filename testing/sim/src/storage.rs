//! The real ledger, on a disk on which everything goes wrong.
//!
//! Three seeds in four have this. The others have a plain list of records, which each start replays from the very
//! beginning, where a ledger goes on from its newest checkpoint. Crashes come in the middle of appends, of rotations, of upkeep and of starts; a reboot is a
//! power cut, and everything else only ends the process. A disk that stalls is a write that comes back late, which
//! the scenarios do with every kind of storage.

use std::sync::Arc;

use tenure_core::kernel::{HashSeed, KernelState, Limits, Tick, TickDuration};
use tenure_core::ledger::EventRecord;
use tenure_faulty_disk::FaultyDisk;
use tenure_ledger::embedded::{EmbeddedLedger, EmbeddedRecovery, LedgerOptions};
use tenure_ledger::signing::LedgerSigningKey;
use tenure_ledger::{
    AppendError, Checkpoint, CheckpointParts, Ledger, LedgerRecovery as _, OpenError, Retention, SpaceLevel,
};
use tenure_registrar::AppendFailure;

use crate::host::TAG;
use crate::invariants::{Violation, ensure};
use crate::rng::Rng;
use crate::simulation_log::SimulationLog;

/// Small, so that rotations happen all the time.
const SEGMENT_SIZE: u64 = 16_384;

/// What a device that fails says.
const EIO: i32 = 5;

/// A ledger, its disk, and what becomes of them.
#[derive(Debug)]
pub struct Storage {
    disk: FaultyDisk,
    ledger: Option<EmbeddedLedger>,
    rng: Rng,
    /// The machine lost its power since the ledger was last opened.
    is_power_cut_due: bool,
    /// Something is wrong with the disk, so that what is written may fail.
    may_fail: bool,
    /// How much room there is on a disk that filled up.
    capacity: Option<u64>,
}

#[derive(Debug)]
pub struct RecoveredLedger {
    /// What all events up to the checkpoint add up to.
    pub state: KernelState,
    pub after: u64,
    pub records: Vec<EventRecord>,
}

impl Storage {
    /// The storage of a seed, for three in four of each scenario.
    pub fn for_seed(seed: u64) -> Option<Storage> {
        let (disk, rng) = (FaultyDisk::new(seed), Rng::new(!seed));
        let storage =
            Storage { disk, ledger: None, rng, is_power_cut_due: false, may_fail: false, capacity: None };
        (!matches!(seed % 8, 1 | 2)).then_some(storage)
    }

    /// Opens the ledger, after the machine or the process went off perhaps again while it did. Nothing if there is no
    /// room to start.
    pub fn open(
        &mut self,
        limits: &Limits,
        hash_seed: HashSeed,
        log: &mut SimulationLog,
    ) -> Result<Option<RecoveredLedger>, Violation> {
        // Whatever was still to fail does not: a new process, another moment.
        self.disk.clear_faults();
        self.disk.set_capacity(self.capacity);
        self.may_fail = self.capacity.is_some();
        loop {
            self.ledger = None;
            if std::mem::take(&mut self.is_power_cut_due) {
                self.disk.restart_after_power_cut()
            } else {
                self.disk.restart_process()
            }
            if self.rng.percent(20) {
                self.disk.crash_after(self.rng.below(20));
            }
            if self.rng.percent(3) {
                self.schedule_fault();
            }
            match self.try_open(limits, hash_seed, log) {
                Ok(found) => {
                    // The crash that did not come.
                    self.disk.crash_after(u64::MAX);
                    return Ok(Some(found));
                }
                Err(_) if self.disk.is_powered_off() => {
                    log.record_coverage("went off while starting");
                    self.is_power_cut_due = self.rng.percent(50);
                }
                Err(OpenError::Io(error)) if error.raw_os_error() == Some(EIO) => {
                    log.record_coverage("device failed while starting");
                }
                Err(OpenError::Io(source) | OpenError::NoSpace { source, .. }) if is_full(&source) => {
                    log.record_coverage("no room to start");
                    return Ok(None);
                }
                Err(error) => return Err(Violation(format!("the ledger does not open: {error:?}"))),
            }
        }
    }

    fn try_open(
        &mut self,
        limits: &Limits,
        hash_seed: HashSeed,
        log: &mut SimulationLog,
    ) -> Result<RecoveredLedger, OpenError> {
        let options =
            LedgerOptions { segment_size: SEGMENT_SIZE, reserve: Some(4 * SEGMENT_SIZE), witness: None };
        let mut recovery = EmbeddedRecovery::begin_on(Arc::new(self.disk.clone()), options)?;
        if let Some(damage) = recovery.warnings().first() {
            return Err(OpenError::Damaged(damage.clone()));
        }
        let checkpoint = recovery.take_checkpoint();
        let (state, after) = match &checkpoint {
            Some(checkpoint) => {
                let state =
                    KernelState::restore(unpadded(checkpoint.state()), TAG, limits.clone(), hash_seed);
                let state = state.map_err(|error| OpenError::Io(std::io::Error::other(error)))?;
                (state, checkpoint.header.head.seq.0)
            }
            None => (KernelState::new(TAG, limits.clone(), hash_seed), 0),
        };
        let mut records = Vec::new();
        while let Some(batch) = recovery.next_batch()? {
            records.extend(batch.records);
        }
        self.ledger = Some(recovery.finish()?);
        log.record_coverage(if after > 0 { "opened from a checkpoint" } else { "opened from the beginning" });
        Ok(RecoveredLedger { state, after, records })
    }

    pub fn append(&mut self, records: &[EventRecord]) -> Result<Result<(), AppendFailure>, Violation> {
        let Some(ledger) = &mut self.ledger else { return Ok(Err(AppendFailure::NotWritten)) };
        match ledger.append(ledger.head().seq, records, b"seal") {
            Ok(_) => Ok(Ok(())),
            Err(AppendError::NoSpace | AppendError::Unavailable(_)) if self.may_fail => {
                Ok(Err(AppendFailure::NotWritten))
            }
            Err(AppendError::OutcomeUnknown { .. }) if self.may_fail => {
                Ok(Err(AppendFailure::OutcomeUnknown))
            }
            Err(error) => Err(Violation(format!("a batch is refused: {error:?}"))),
        }
    }

    /// One of the next writes or syncs fails.
    pub fn schedule_fault(&mut self) {
        self.may_fail = true;
        let count = self.rng.below(3);
        if self.rng.percent(70) {
            self.disk.fail_sync_after(count)
        } else {
            self.disk.fail_write_after(count)
        }
    }

    /// The process or the machine goes off, in the middle of writing `records`, or of upkeep, or of nothing. Says
    /// whether the records are there for sure.
    pub fn crash(
        &mut self,
        records: Option<&[EventRecord]>,
        durable: &KernelState,
    ) -> Result<bool, Violation> {
        self.may_fail = true;
        let max_operations = if self.rng.percent(80) { 4 } else { 24 };
        self.disk.crash_after(self.rng.below(max_operations));
        let is_there = match records {
            Some(records) => self.append(records)?.is_ok(),
            None => {
                self.run_maintenance(durable)?;
                false
            }
        };
        self.ledger = None;
        Ok(is_there)
    }

    /// The power is cut before the next start.
    pub fn schedule_power_cut(&mut self) {
        self.is_power_cut_due = true;
    }

    /// What the housekeeper does beside the writer, now and then. `durable` is what all events add up to.
    pub fn run_maintenance(&mut self, durable: &KernelState) -> Result<(), Violation> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let maintenance = ledger.maintenance();
        let done = match self.rng.below(100) {
            0..15 => maintenance.prepare_space().map_err(|error| error.to_string()),
            15..18 => {
                let state = padded(durable);
                let (head, reader) = (ledger.head(), ledger.reader());
                let (ledger, epoch) = (reader.ledger(), reader.epoch());
                let parts = CheckpointParts { ledger, epoch, head, keys: &[], state: &state };
                let bytes = Checkpoint::write(parts, &LedgerSigningKey::from_secret(&[7; 32]));
                maintenance.store_checkpoint(head, &bytes).map_err(|error| error.to_string())
            }
            18..22 => {
                let retention = Retention { age: TickDuration::from_secs(1 << 30), bytes: 3 * SEGMENT_SIZE };
                maintenance.prune(retention, Tick(0)).map_err(|error| error.to_string())
            }
            _ => Ok(()),
        };
        ensure(done.is_ok() || self.may_fail, || format!("upkeep fails on a disk that does not: {done:?}"))
    }

    /// The disk fills up, but for a little.
    pub fn fill_disk(&mut self) {
        self.may_fail = true;
        self.capacity = Some(self.disk.used_bytes() + self.rng.below(2 * SEGMENT_SIZE));
        self.disk.set_capacity(self.capacity);
    }

    pub fn free_disk(&mut self) {
        self.capacity = None;
        self.disk.set_capacity(None);
        if let Some(ledger) = &self.ledger {
            // The next round of the housekeeper; if it fails, that is for the one after it.
            let _ = ledger.maintenance().prepare_space();
        }
    }

    pub fn space_level(&self, live: usize) -> SpaceLevel {
        self.ledger.as_ref().map_or(SpaceLevel::Plenty, |ledger| ledger.space_level(live))
    }
}

/// How long the state in a checkpoint is here, or a multiple of it.
///
/// The disk's faults depend on how many sectors are written, and the format of checkpoints may change: without
/// this, every byte more or less would lead to another world, with other records.
const PADDED_CHECKPOINT_SIZE: usize = 131_072;

/// The state as bytes: behind its length, and filled up with zeros.
fn padded(state: &KernelState) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    state.save(&mut |piece| bytes.extend_from_slice(piece));
    let length = bytes.len() as u64 - 8;
    bytes[..8].copy_from_slice(&length.to_be_bytes());
    bytes.resize(bytes.len().next_multiple_of(PADDED_CHECKPOINT_SIZE), 0);
    bytes
}

/// The state's own bytes.
fn unpadded(bytes: &[u8]) -> &[u8] {
    let (length, state) = bytes.split_first_chunk().expect("a padded state");
    let length = usize::try_from(u64::from_be_bytes(*length)).expect("a length");
    &state[..length]
}

fn is_full(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::StorageFull
}
