//! What a test knows was written to a ledger on a faulty disk, and what it may find there afterwards.

use std::sync::Arc;

use tenure_core::kernel::{Tick, TickDuration};
use tenure_core::ledger::EventRecord;
use tenure_faulty_disk::FaultyDisk;
use tenure_ledger::embedded::{EmbeddedLedger, EmbeddedRecovery, LedgerOptions};
use tenure_ledger::{
    AppendError, Batch, BatchBytes, Head, Ledger, LedgerRecovery as _, OpenError, Retention, Seq, chain_hash,
};

use crate::ledger_suite::{checkpoint_bytes, event, small_options};

/// Everything that was acknowledged, and the batch of which nobody knows.
#[derive(Debug, Clone, Default)]
pub struct ExpectedLedger {
    pub batches: Vec<Batch>,
    /// The write of this one did not come back.
    pub in_doubt: Option<Vec<EventRecord>>,
    /// Those that were kept, oldest first; before them those of which nobody knows.
    checkpoints: Vec<Seq>,
}

impl ExpectedLedger {
    pub fn head(&self) -> Head {
        self.batches.last().map(Batch::head).unwrap_or_default()
    }

    /// Opens the ledger on `disk` and checks that it holds what it must, and nothing else.
    pub fn open_and_check(&mut self, disk: &FaultyDisk) -> Result<EmbeddedLedger, OpenError> {
        self.open_and_check_with(disk, small_options())
    }

    pub fn open_and_check_with(
        &mut self,
        disk: &FaultyDisk,
        options: LedgerOptions,
    ) -> Result<EmbeddedLedger, OpenError> {
        let mut recovery = EmbeddedRecovery::begin_on(Arc::new(disk.clone()), options)?;
        assert!(recovery.warnings().is_empty(), "{:?}", recovery.warnings());
        let checkpoint = recovery.take_checkpoint();
        let mut handed_out = Vec::new();
        while let Some(batch) = recovery.next_batch()? {
            handed_out.push(batch);
        }
        let ledger = recovery.finish()?;
        self.resolve_in_doubt(&ledger);
        let after = checkpoint.map_or(Seq(0), |checkpoint| {
            assert_eq!(
                checkpoint.state(),
                state_at(checkpoint.header.head),
                "another checkpoint than was made"
            );
            let seq = checkpoint.header.head.seq;
            assert!(self.checkpoints.contains(&seq), "nobody made a checkpoint at {seq:?}");
            // Also one of which nobody knew whether it was kept.
            self.checkpoints.retain(|other| *other != seq);
            self.checkpoints.push(seq);
            seq
        });
        assert_eq!(handed_out, self.batches_after(after), "what a start hands out");
        self.check(&ledger);
        Ok(ledger)
    }

    /// What was in doubt is there, whole, or it is not there.
    fn resolve_in_doubt(&mut self, ledger: &EmbeddedLedger) {
        let Some(records) = self.in_doubt.take() else { return };
        let before = self.head();
        if ledger.head() != before {
            self.push(before, &records);
        }
    }

    fn push(&mut self, before: Head, records: &[EventRecord]) {
        let first = Seq(before.seq.0 + 1);
        let bytes = BatchBytes::new(first, records).with_signature(b"sealed");
        let hash = chain_hash(before.hash, bytes.as_slice());
        self.batches.push(Batch { first, records: records.to_vec(), signature: b"sealed".to_vec(), hash });
    }

    fn batches_after(&self, after: Seq) -> Vec<Batch> {
        self.batches.iter().filter(|batch| batch.last() > after).cloned().collect()
    }

    /// The ledger and its reader have what was written.
    pub fn check(&self, ledger: &EmbeddedLedger) {
        assert_eq!(ledger.head(), self.head());
        let reader = ledger.reader();
        assert_eq!(reader.head(), self.head());
        let first = reader.pruned_through();
        let oldest = self.checkpoints.iter().rev().nth(1).copied().unwrap_or_default();
        assert!(first <= oldest, "{first:?} was pruned, and the older checkpoint is at {oldest:?}");
        let read: Vec<Batch> = reader.read(first).collect::<Result<_, _>>().expect("it can be read");
        assert_eq!(read, self.batches_after(first));
    }

    /// Appends a batch of `count` events.
    pub fn append(&mut self, ledger: &mut EmbeddedLedger, count: u64) -> Result<(), AppendError> {
        let before = self.head();
        let records: Vec<_> = (1..=count).map(|number| event(before.seq.0 + number)).collect();
        match ledger.append(before.seq, &records, b"sealed") {
            Ok(head) => {
                self.push(before, &records);
                assert_eq!(head, self.head());
                Ok(())
            }
            Err(error) => {
                if let AppendError::OutcomeUnknown { .. } = error {
                    self.in_doubt = Some(records);
                }
                Err(error)
            }
        }
    }

    /// Keeps a checkpoint of all that was appended.
    pub fn checkpoint(&mut self, ledger: &EmbeddedLedger) -> std::io::Result<()> {
        let head = ledger.head();
        let bytes = checkpoint_bytes(&*ledger.reader(), head, &state_at(head));
        if !self.checkpoints.contains(&head.seq) {
            self.checkpoints.push(head.seq);
        }
        let kept = ledger.maintenance().store_checkpoint(head, &bytes);
        if kept.is_err() {
            // It may be there or not; what may be pruned rests on those that were kept for sure.
            self.checkpoints.rotate_right(1);
        }
        kept
    }
}

/// Everything goes that can go.
pub fn prune(ledger: &EmbeddedLedger) -> bool {
    let retention = Retention { age: TickDuration::from_secs(1 << 30), bytes: 3 * 4_096 };
    ledger.maintenance().prune(retention, Tick(0)).is_ok()
}

fn state_at(head: Head) -> Vec<u8> {
    format!("all up to {}", head.seq.0).into_bytes().repeat(40)
}
