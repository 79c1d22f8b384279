//! A ledger in memory, for tests and simulations.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tenure_core::kernel::Tick;

use crate::batch::{Batch, BatchBytes, chain_hash};
use crate::checkpoint::Checkpoint;
use crate::error::{AppendError, OpenError, ReadError};
use crate::ledger::{
    Batches, Head, Ledger, LedgerId, LedgerMaintenance, LedgerReader, LedgerRecovery, LedgerStore, Retention,
    Seq,
};

/// A ledger in memory: the store, and a writer of it. It lasts as long as one of its writers, readers or clones.
///
/// A writer does not keep another one from opening the ledger. Of two, the first to append overtakes the other.
#[derive(Debug, Clone)]
pub struct MemoryLedger {
    shared: Arc<SharedLedger>,
    /// Where the ledger ends, as far as this writer knows.
    head: Head,
}

#[derive(Debug)]
struct SharedLedger {
    id: LedgerId,
    state: Mutex<LedgerState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LedgerState {
    batches: Vec<StoredBatch>,
    /// The sum over all batches.
    bytes: u64,
    pruned_through: Seq,
    head: Head,
    checkpoint: Option<Checkpoint>,
    has_work: bool,
}

#[derive(Debug)]
struct StoredBatch {
    batch: Arc<Batch>,
    bytes: u64,
}

impl MemoryLedger {
    /// An empty ledger with this id.
    pub fn new(id: LedgerId) -> MemoryLedger {
        let shared = Arc::new(SharedLedger { id, state: Mutex::default(), changed: Condvar::new() });
        MemoryLedger { shared, head: Head::default() }
    }
}

impl LedgerStore for MemoryLedger {
    fn open(&self) -> Result<Box<dyn LedgerRecovery>, OpenError> {
        let state = self.shared.state.lock();
        let (checkpoint, batches) = (state.checkpoint.clone(), state.read(state.checkpoint_head().seq));
        let ledger = MemoryLedger { shared: self.shared.clone(), head: state.head };
        Ok(Box::new(MemoryRecovery { ledger, checkpoint, batches }))
    }
}

struct MemoryRecovery {
    ledger: MemoryLedger,
    checkpoint: Option<Checkpoint>,
    batches: Batches,
}

impl LedgerRecovery for MemoryRecovery {
    fn ledger(&self) -> LedgerId {
        self.ledger.shared.id
    }

    fn take_checkpoint(&mut self) -> Option<Checkpoint> {
        self.checkpoint.take()
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, OpenError> {
        self.batches.next().transpose().map_err(|error| OpenError::Io(io::Error::other(error)))
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Ledger>, OpenError> {
        Ok(Box::new(self.ledger))
    }
}

impl Ledger for MemoryLedger {
    fn head(&self) -> Head {
        self.head
    }

    fn append_batch(&mut self, batch: &BatchBytes) -> Result<Head, AppendError> {
        self.head.check_is_before(batch)?;
        let mut state = self.shared.state.lock();
        if state.head != self.head {
            return Err(AppendError::Overtaken { expected: self.head.seq, found: state.head.seq });
        }
        if batch.is_empty() {
            return Ok(self.head);
        }
        let hash = chain_hash(state.head.hash, batch.as_slice());
        let decoded = batch.decode(hash).expect("what was just encoded can be decoded");
        let bytes = batch.as_slice().len() as u64;
        state.bytes += bytes;
        state.batches.push(StoredBatch { batch: Arc::new(decoded), bytes });
        self.head = Head { seq: batch.last(), hash };
        state.head = self.head;
        Ok(self.head)
    }

    fn reader(&self) -> Arc<dyn LedgerReader> {
        self.shared.clone()
    }

    fn maintenance(&self) -> Arc<dyn LedgerMaintenance> {
        self.shared.clone()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

impl LedgerReader for SharedLedger {
    fn ledger(&self) -> LedgerId {
        self.id
    }

    fn epoch(&self) -> u64 {
        1
    }

    fn head(&self) -> Head {
        self.state.lock().head
    }

    fn pruned_through(&self) -> Seq {
        self.state.lock().pruned_through
    }

    fn read(&self, after: Seq) -> Batches {
        self.state.lock().read(after)
    }

    fn checkpoint_before(&self, at: Seq) -> Result<Option<Checkpoint>, ReadError> {
        let checkpoint = self.state.lock().checkpoint.clone();
        Ok(checkpoint.filter(|checkpoint| checkpoint.header.head.seq <= at))
    }
}

impl LedgerMaintenance for SharedLedger {
    fn wait_for_work(&self, timeout: Duration) {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| !state.has_work, timeout);
        state.has_work = false;
    }

    fn wake(&self) {
        self.state.lock().has_work = true;
        self.changed.notify_all();
    }

    fn prepare_space(&self) -> io::Result<()> {
        Ok(())
    }

    fn newest_checkpoint_head(&self) -> Head {
        self.state.lock().checkpoint_head()
    }

    fn store_checkpoint(&self, _head: Head, bytes: &[u8]) -> io::Result<()> {
        let checkpoint = Checkpoint::read(bytes.to_vec()).map_err(io::Error::other)?;
        self.state.lock().checkpoint = Some(checkpoint);
        Ok(())
    }

    fn is_retention_exceeded(&self, retention: Retention, now: Tick) -> Result<bool, ReadError> {
        Ok(self.state.lock().is_retention_exceeded(self.id, retention, now))
    }

    fn prune(&self, retention: Retention, now: Tick) -> Result<(), ReadError> {
        let mut state = self.state.lock();
        let covered = state.checkpoint_head().seq;
        while state.batches.first().is_some_and(|oldest| oldest.batch.last() <= covered)
            && state.is_retention_exceeded(self.id, retention, now)
        {
            let pruned = state.batches.remove(0);
            state.bytes -= pruned.bytes;
            state.pruned_through = pruned.batch.last();
        }
        Ok(())
    }
}

impl LedgerState {
    fn read(&self, after: Seq) -> Batches {
        if after < self.pruned_through {
            let first = self.pruned_through;
            return Box::new(std::iter::once(Err(ReadError::OutOfRange { requested: after, first })));
        }
        let from = self.batches.partition_point(|stored| stored.batch.last() <= after);
        let batches: Vec<_> = self.batches[from..].iter().map(|stored| stored.batch.clone()).collect();
        Box::new(batches.into_iter().map(|batch| Ok((*batch).clone())))
    }

    fn checkpoint_head(&self) -> Head {
        self.checkpoint.as_ref().map_or(Head::default(), |checkpoint| checkpoint.header.head)
    }

    fn is_retention_exceeded(&self, id: LedgerId, retention: Retention, now: Tick) -> bool {
        let oldest = self.batches.first().and_then(|oldest| oldest.batch.first_tick(id.tag()));
        self.bytes > retention.bytes || oldest.is_some_and(|tick| now.since(tick) > retention.age)
    }
}
