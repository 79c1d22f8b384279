//! Signs and writes: here, or on a thread of its own, while the writer decides what comes next.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_ledger::signing::{Leaf, LedgerId, LedgerSigningKey, SignedBatch, sign_batch};
use tenure_ledger::{AppendError, BatchBytes, Ledger, Seq};

use super::clock::boot_microseconds;
use super::feed::DurableBatch;
use crate::registrar::{AppendFailure, BatchWrite};

/// The ledger, and what it is signed with.
pub(super) struct Appender {
    pub(super) ledger: Box<dyn Ledger>,
    pub(super) id: LedgerId,
    pub(super) key: Arc<LedgerSigningKey>,
}

pub(super) type AppendResult = Result<(DurableBatch, SignedBatch), FailedAppend>;

/// Why nothing, or perhaps nothing, was written.
pub(super) struct FailedAppend {
    pub(super) failure: AppendFailure,
    pub(super) source: Option<AppendError>,
}

impl Appender {
    /// Signs, writes, and waits for the disk.
    pub(super) fn append(&mut self, write: BatchWrite) -> AppendResult {
        let BatchWrite { records, mut leaves } = write;
        let before = self.ledger.head();
        let unsigned = BatchBytes::from_records(Seq(before.seq.0 + 1), records);
        leaves.push(Leaf::of_batch(self.id, before.hash, &unsigned));
        let Ok(signed) = sign_batch(&self.key, self.id, unsigned.first().0, &leaves) else {
            // More than can be signed at once; the limits of a batch keep it from that.
            return Err(FailedAppend { failure: AppendFailure::NotWritten, source: None });
        };
        let batch = unsigned.with_signature(&signed.signature().to_bytes());
        let began = boot_microseconds();
        match self.ledger.append_batch(&batch) {
            Ok(head) => {
                let took = Duration::from_micros(boot_microseconds().saturating_sub(began));
                Ok((DurableBatch { batch, hash: head.hash, write_time: took }, signed))
            }
            Err(error) => Err(FailedAppend { failure: failure_of(&error), source: Some(error) }),
        }
    }
}

fn failure_of(error: &AppendError) -> AppendFailure {
    match error {
        AppendError::Overtaken { .. } => AppendFailure::Overtaken,
        AppendError::OutcomeUnknown { .. } => AppendFailure::OutcomeUnknown,
        _ => AppendFailure::NotWritten,
    }
}

/// A thread that writes for the writer. The appender moves there and back, so it has one owner at any time.
pub(super) struct AppendThread {
    jobs: Option<SyncSender<(Appender, BatchWrite)>>,
    done: Receiver<(Appender, AppendResult)>,
    thread: Option<JoinHandle<()>>,
}

impl AppendThread {
    pub(super) fn start() -> io::Result<AppendThread> {
        let (job_sender, to_do) = sync_channel::<(Appender, BatchWrite)>(1);
        let (result_sender, done) = sync_channel(1);
        let thread = std::thread::Builder::new().name("tenure-scribe".into()).spawn(move || {
            for (mut appender, write) in to_do {
                let written = appender.append(write);
                // Nobody takes it back only if the writer's thread has panicked.
                let _ = result_sender.send((appender, written));
            }
        })?;
        Ok(AppendThread { jobs: Some(job_sender), done, thread: Some(thread) })
    }

    /// Writes, and calls `meanwhile` again and again until that is done, at first at once; without a rest as long as that
    /// says that there is more to do.
    pub(super) fn append(
        &self,
        appender: Appender,
        write: BatchWrite,
        mut meanwhile: impl FnMut() -> bool,
    ) -> (Appender, AppendResult) {
        let is_sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send((appender, write)).is_ok());
        assert!(is_sent, "the thread that writes has ended by a panic");
        loop {
            let rest = if meanwhile() { Duration::ZERO } else { POLL_INTERVAL };
            match self.done.recv_timeout(rest) {
                Ok(done) => return done,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("the thread that writes has ended by a panic"),
            }
        }
    }
}

/// How often to look for more to decide while the disk is waited for. Shorter costs more than it wins: nothing can be
/// written before that one is done anyway.
const POLL_INTERVAL: Duration = Duration::from_micros(100);

impl Drop for AppendThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
