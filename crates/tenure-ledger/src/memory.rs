//! A ledger that is gone with its process.

use tenure_core::ledger::EventRecord;

use crate::batch::{Batch, chain};
use crate::ledger::{AppendError, Head, Ledger, ReadError, Seq};

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

    fn append(&mut self, expected: Seq, records: &[EventRecord], seal: &[u8]) -> Result<Head, AppendError> {
        if expected != self.head.seq {
            return Err(AppendError::Overtaken { expected, found: self.head.seq });
        }
        let first = Seq(expected.0 + 1);
        let hash = chain(self.head.hash, &Batch::encode(first, records, seal));
        let batch = Batch { first, records: records.to_vec(), seal: seal.to_vec(), hash };
        if !records.is_empty() {
            self.head = Head { seq: batch.last(), hash };
            self.batches.push(batch);
        }
        Ok(self.head)
    }

    fn read(&self, after: Seq) -> Box<dyn Iterator<Item = Result<Batch, ReadError>> + '_> {
        let from = self.batches.partition_point(|batch| batch.last() <= after);
        Box::new(self.batches[from..].iter().cloned().map(Ok))
    }
}
