//! The thread beside the writer: makes blank files and checkpoints, prunes, and never keeps anybody waiting.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_core::kernel::{HashKey, Limits};
use tenure_ledger::embedded::{Retention, Upkeep};
use tenure_ledger::signing::NodeKey;

use super::handle::Handle;
use super::replay::{Replay, ReplayError};
use super::view::{Trouble, describe};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routine {
    /// A checkpoint is made once there are this many events after the last: so many a start has to read at most.
    pub checkpoint_after: u64,
    pub retention: Retention,
}

impl Default for Routine {
    fn default() -> Self {
        Self { checkpoint_after: 500_000, retention: Retention::default() }
    }
}

/// How long it sleeps when nobody wakes it: so often it looks whether there is room again.
const NAP: Duration = Duration::from_secs(2);

/// Every so many naps it looks at what seldom changes: every minute or so.
const SELDOM: u64 = 30;

pub(crate) struct Housekeeper {
    upkeep: Upkeep,
    is_stopped: Arc<AtomicBool>,
    trouble: Arc<Trouble>,
    thread: JoinHandle<()>,
}

struct Chores {
    upkeep: Upkeep,
    routine: Routine,
    limits: Limits,
    hash_key: HashKey,
    key: Arc<NodeKey>,
    writer: Handle,
    is_stopped: Arc<AtomicBool>,
    trouble: Arc<Trouble>,
    naps: u64,
    next_checkpoint: u64,
}

impl Housekeeper {
    pub(crate) fn start(
        upkeep: Upkeep,
        routine: Routine,
        limits: Limits,
        hash_key: HashKey,
        key: Arc<NodeKey>,
        writer: Handle,
    ) -> io::Result<Housekeeper> {
        let (is_stopped, trouble) = (Arc::new(AtomicBool::new(false)), Arc::new(Trouble::default()));
        let chores = Chores {
            upkeep: upkeep.clone(),
            routine,
            limits,
            hash_key,
            key,
            writer,
            is_stopped: is_stopped.clone(),
            trouble: trouble.clone(),
            naps: 0,
            next_checkpoint: 0,
        };
        let thread = std::thread::Builder::new().name("tenure-upkeep".into()).spawn(move || chores.run())?;
        Ok(Housekeeper { upkeep, is_stopped, trouble, thread })
    }

    /// What it could not do, for people; nothing if all is well.
    pub(crate) fn trouble(&self) -> Option<String> {
        let ended =
            || self.thread.is_finished().then(|| "the housekeeping has ended by a mistake in it".into());
        self.trouble.get().or_else(ended)
    }

    pub(crate) fn stop(self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.upkeep.wake();
        // It promises nothing that a panic in it could break.
        let _ = self.thread.join();
    }
}

impl Chores {
    fn run(mut self) {
        while !self.is_stopped.load(Ordering::Relaxed) {
            let trouble = self.tend().err();
            self.trouble.set(trouble);
            self.upkeep.wait(NAP);
            self.naps += 1;
        }
    }

    fn tend(&mut self) -> Result<(), String> {
        let made = self.upkeep.make_blanks();
        // Whether there is room now or no longer, the writer decides by it.
        self.writer.wake();
        // Before a checkpoint is made: that takes room.
        if self.naps.is_multiple_of(SELDOM) {
            self.prune()?;
        }
        if self.is_checkpoint_due() {
            // One that fails is not tried again at once: it costs as much as one that does not.
            self.next_checkpoint = self.naps + SELDOM;
            self.checkpoint().map_err(|error| describe("no checkpoint could be made", &error))?;
            self.next_checkpoint = 0;
            self.prune()?;
        }
        made.map_err(|error| describe("no room could be set aside", &error))
    }

    fn is_checkpoint_due(&self) -> bool {
        let since = self.upkeep.reader().head().seq.0 - self.upkeep.checkpointed().seq.0;
        // A quiet ledger has history too that is to be forgotten: that needs checkpoints behind it.
        let is_overdue = || {
            let is_looked_at = self.naps.is_multiple_of(SELDOM) && since > 0;
            is_looked_at
                && self.upkeep.is_overdue(self.routine.retention, self.writer.view().now()).unwrap_or(false)
        };
        self.naps >= self.next_checkpoint && (since >= self.routine.checkpoint_after || is_overdue())
    }

    fn prune(&self) -> Result<usize, String> {
        let pruned = self.upkeep.prune(self.routine.retention, self.writer.view().now());
        pruned.map_err(|error| describe("old segments could not be removed", &error))
    }

    /// Makes a checkpoint from the last one and what happened since, as it stands in the ledger: the writer is not
    /// asked, and what it holds in memory is checked by this on the way.
    fn checkpoint(&self) -> Result<(), ReplayError> {
        let reader = self.upkeep.reader();
        let checkpoint = self.upkeep.checkpoint()?;
        let mut replay =
            Replay::begin(checkpoint.as_ref(), reader.ledger(), self.limits.clone(), self.hash_key)?;
        drop(checkpoint);
        for batch in reader.read(replay.head().seq) {
            replay.apply(&batch?)?;
            if self.is_stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        let bytes = replay.checkpoint(reader.epoch(), &self.key);
        self.upkeep.keep_checkpoint(replay.head(), &bytes).map_err(tenure_ledger::ReadError::from)?;
        Ok(())
    }
}
