//! The maintenance thread: preallocates files, makes checkpoints and prunes, without delaying the writer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_core::kernel::{HashSeed, Limits};
use tenure_ledger::signing::LedgerSigningKey;
use tenure_ledger::{LedgerMaintenance, LedgerReader, Retention};

use super::handle::Handle;
use super::replay::{Replay, ReplayError};
use super::view::{BackgroundHealth, format_error_chain};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaintenanceOptions {
    /// A checkpoint is made once there are this many events after the last: so many a start has to read at most.
    pub checkpoint_after: u64,
    pub retention: Retention,
}

impl Default for MaintenanceOptions {
    fn default() -> Self {
        Self { checkpoint_after: 500_000, retention: Retention::default() }
    }
}

/// How long it sleeps when nobody wakes it: so often it looks whether there is room again.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);

/// Every so many naps it looks at what seldom changes: every minute or so.
const PRUNE_EVERY: u64 = 30;

pub(crate) struct MaintenanceThread {
    ledger: Arc<dyn LedgerMaintenance>,
    is_stopped: Arc<AtomicBool>,
    health: Arc<BackgroundHealth>,
    thread: JoinHandle<()>,
}

struct MaintenanceLoop {
    ledger: Arc<dyn LedgerMaintenance>,
    reader: Arc<dyn LedgerReader>,
    options: MaintenanceOptions,
    limits: Limits,
    hash_seed: HashSeed,
    key: Arc<LedgerSigningKey>,
    writer: Handle,
    is_stopped: Arc<AtomicBool>,
    health: Arc<BackgroundHealth>,
    rounds: u64,
    next_checkpoint: u64,
}

impl MaintenanceThread {
    pub(crate) fn start(
        ledger: Arc<dyn LedgerMaintenance>,
        reader: Arc<dyn LedgerReader>,
        routine: MaintenanceOptions,
        limits: Limits,
        hash_seed: HashSeed,
        key: Arc<LedgerSigningKey>,
        writer: Handle,
    ) -> io::Result<MaintenanceThread> {
        let (is_stopped, health) = (Arc::new(AtomicBool::new(false)), Arc::new(BackgroundHealth::default()));
        let maintenance = MaintenanceLoop {
            ledger: ledger.clone(),
            reader,
            options: routine,
            limits,
            hash_seed,
            key,
            writer,
            is_stopped: is_stopped.clone(),
            health: health.clone(),
            rounds: 0,
            next_checkpoint: 0,
        };
        let thread =
            std::thread::Builder::new().name("tenure-upkeep".into()).spawn(move || maintenance.run())?;
        Ok(MaintenanceThread { ledger, is_stopped, health, thread })
    }

    /// What it could not do, for people; nothing if all is well.
    pub(crate) fn problem(&self) -> Option<String> {
        let ended =
            || self.thread.is_finished().then(|| "the housekeeping has ended by a mistake in it".into());
        self.health.get().or_else(ended)
    }

    pub(crate) fn stop(self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.ledger.wake();
        // It promises nothing that a panic in it could break.
        let _ = self.thread.join();
    }
}

impl MaintenanceLoop {
    fn run(mut self) {
        while !self.is_stopped.load(Ordering::Relaxed) {
            let problem = self.run_once().err();
            self.health.set(problem);
            self.ledger.wait_for_work(IDLE_INTERVAL);
            self.rounds += 1;
        }
    }

    fn run_once(&mut self) -> Result<(), String> {
        let made = self.ledger.prepare_space();
        // Whether there is room now or no longer, the writer decides by it.
        self.writer.wake();
        // Before a checkpoint is made: that takes room.
        if self.rounds.is_multiple_of(PRUNE_EVERY) {
            self.prune()?;
        }
        if self.is_checkpoint_due() {
            // One that fails is not tried again at once: it costs as much as one that does not.
            self.next_checkpoint = self.rounds + PRUNE_EVERY;
            self.checkpoint().map_err(|error| format_error_chain("no checkpoint could be made", &error))?;
            self.next_checkpoint = 0;
            self.prune()?;
        }
        made.map_err(|error| format_error_chain("no room could be set aside", &error))
    }

    fn is_checkpoint_due(&self) -> bool {
        let since = self.reader.head().seq.0 - self.ledger.newest_checkpoint_head().seq.0;
        // A quiet ledger has history too that is to be forgotten: that needs checkpoints behind it.
        let is_overdue = || {
            let is_looked_at = self.rounds.is_multiple_of(PRUNE_EVERY) && since > 0;
            is_looked_at
                && self
                    .ledger
                    .is_retention_exceeded(self.options.retention, self.writer.view().now())
                    .unwrap_or(false)
        };
        self.rounds >= self.next_checkpoint && (since >= self.options.checkpoint_after || is_overdue())
    }

    fn prune(&self) -> Result<(), String> {
        let pruned = self.ledger.prune(self.options.retention, self.writer.view().now());
        pruned.map_err(|error| format_error_chain("old segments could not be removed", &error))
    }

    /// Makes a checkpoint from the last one and what happened since, as it stands in the ledger: the writer is not
    /// asked, and what it holds in memory is checked by this on the way.
    fn checkpoint(&self) -> Result<(), ReplayError> {
        let (ledger, limits) = (self.reader.ledger(), self.limits.clone());
        let checkpoint = self.reader.newest_checkpoint()?;
        let mut replay = Replay::begin(checkpoint.as_ref(), ledger, limits, self.hash_seed)?;
        drop(checkpoint);
        for batch in self.reader.read(replay.head().seq) {
            replay.apply(&batch?)?;
            if self.is_stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        let bytes = replay.encode_checkpoint(self.reader.epoch(), &self.key);
        self.ledger.store_checkpoint(replay.head(), &bytes).map_err(tenure_ledger::ReadError::from)?;
        Ok(())
    }
}
