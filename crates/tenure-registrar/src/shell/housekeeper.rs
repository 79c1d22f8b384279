//! The thread beside the writer: makes blank files and checkpoints, prunes, and never keeps anybody waiting.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_core::kernel::{HashKey, Limits, State};
use tenure_ledger::embedded::{Retention, Upkeep};
use tenure_ledger::signing::NodeKey;

use super::replay::{Replay, ReplayError};
use super::writer::Handle;

/// When to do what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routine {
    /// A checkpoint is made once there are this many events after the last: so many a start has to read at most.
    pub checkpoint_after: u64,
    /// What is kept.
    pub retention: Retention,
}

impl Default for Routine {
    fn default() -> Self {
        Self { checkpoint_after: 500_000, retention: Retention::default() }
    }
}

/// How long it sleeps when nobody wakes it: so often it looks whether there is room again.
const NAP: Duration = Duration::from_secs(2);

pub(crate) struct Housekeeper {
    upkeep: Upkeep,
    is_stopped: Arc<AtomicBool>,
    trouble: Arc<Mutex<Option<String>>>,
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
    trouble: Arc<Mutex<Option<String>>>,
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
        let (is_stopped, trouble) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let chores = Chores {
            upkeep: upkeep.clone(),
            routine,
            limits,
            hash_key,
            key,
            writer,
            is_stopped: is_stopped.clone(),
            trouble: trouble.clone(),
        };
        let thread = std::thread::Builder::new().name("tenure-upkeep".into()).spawn(move || chores.run())?;
        Ok(Housekeeper { upkeep, is_stopped, trouble, thread })
    }

    /// What it could not do, for people; nothing if all is well.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn stop(self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.upkeep.wake();
        // It promises nothing that a panic in it could break.
        let _ = self.thread.join();
    }
}

impl Chores {
    fn run(self) {
        while !self.is_stopped.load(Ordering::Relaxed) {
            let trouble = self.tend().err();
            *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
            self.upkeep.wait(NAP);
        }
    }

    fn tend(&self) -> Result<(), String> {
        let made = self.upkeep.make_blanks();
        // Whether there is room now or no longer, the writer decides by it.
        self.writer.wake();
        let head = self.upkeep.reader().head();
        if head.seq.0 - self.upkeep.checkpointed().seq.0 >= self.routine.checkpoint_after {
            let now = self.checkpoint().map_err(|error| describe("no checkpoint could be made", &error))?;
            if let Some(replay) = now {
                let pruned = self.upkeep.prune(self.routine.retention, replay.now());
                pruned.map_err(|error| describe("old segments could not be removed", &error))?;
            }
        }
        made.map_err(|error| describe("no room could be set aside", &error))
    }

    /// Makes a checkpoint from the last one and what happened since, as it stands in the ledger: the writer is not
    /// asked, and what it holds in memory is checked by this on the way.
    fn checkpoint(&self) -> Result<Option<Replay>, ReplayError> {
        let reader = self.upkeep.reader();
        let mut replay = match self.upkeep.checkpoint()? {
            Some(checkpoint) => Replay::resume(&checkpoint, self.limits.clone(), self.hash_key)?,
            None => {
                let ledger = reader.ledger();
                Replay::new(ledger, State::new(ledger.tag(), self.limits.clone(), self.hash_key))
            }
        };
        for batch in reader.read(replay.head().seq) {
            replay.apply(&batch?)?;
            if self.is_stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        let bytes = replay.checkpoint(reader.epoch(), &self.key);
        self.upkeep.keep_checkpoint(replay.head(), &bytes).map_err(tenure_ledger::ReadError::from)?;
        Ok(Some(replay))
    }
}

fn describe(what: &str, error: &dyn std::error::Error) -> String {
    let mut text = format!("{what}: {error}");
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}
