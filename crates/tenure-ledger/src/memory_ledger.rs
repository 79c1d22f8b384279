//! A ledger in memory, for tests and the simulator.

use crate::batch::{Batch, BatchBytes, chain_hash};
use crate::error::{AppendError, ReadError};
use crate::ledger::{Head, Ledger, Seq};

/// For tests, simulations, and whoever needs leases but no memory.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    batches: Vec<Batch>,
    head: Head,
}

impl Ledger for MemoryLedger {
    fn head(&self) -> Head {
        self.head
    }

    fn append_batch(&mut self, batch: &BatchBytes) -> Result<Head, AppendError> {
        self.head.check_is_before(batch)?;
        if batch.is_empty() {
            return Ok(self.head);
        }
        let hash = chain_hash(self.head.hash, batch.as_slice());
        let decoded = Batch::decode(batch.first(), batch.as_slice(), hash);
        self.batches.push(decoded.expect("what was just encoded can be decoded"));
        self.head = Head { seq: batch.last(), hash };
        Ok(self.head)
    }

    fn read(&self, after: Seq) -> Box<dyn Iterator<Item = Result<Batch, ReadError>> + '_> {
        let from = self.batches.partition_point(|batch| batch.last() <= after);
        Box::new(self.batches[from..].iter().cloned().map(Ok))
    }
}
