//! Signs and writes: here, or on a thread of its own, while the writer decides what comes next.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_ledger::signing::{Leaf, LedgerId, NodeKey, SealedBatch, seal_batch};
use tenure_ledger::{AppendError, BatchBytes, Ledger, Seq};

use super::clock::boot_microseconds;
use super::feed::Durable;
use crate::registrar::{AppendFailure, Write};

/// The ledger, and what it is signed with.
pub(super) struct Pen<L> {
    pub(super) ledger: L,
    pub(super) id: LedgerId,
    pub(super) key: Arc<NodeKey>,
}

pub(super) type Written = Result<(Durable, SealedBatch), WriteError>;

/// Why nothing, or perhaps nothing, was written.
pub(super) struct WriteError {
    pub(super) failure: AppendFailure,
    pub(super) source: Option<AppendError>,
}

impl<L: Ledger> Pen<L> {
    /// Signs, writes, and waits for the disk.
    pub(super) fn write(&mut self, write: Write) -> Written {
        let Write { records, mut leaves } = write;
        let before = self.ledger.head();
        let unsealed = BatchBytes::of(Seq(before.seq.0 + 1), records);
        leaves.push(Leaf::of_batch(self.id, before.hash, &unsealed));
        let Ok(sealed) = seal_batch(&self.key, self.id, unsealed.first().0, &leaves) else {
            // More than can be signed at once; the limits of a batch keep it from that.
            return Err(WriteError { failure: AppendFailure::NotWritten, source: None });
        };
        let batch = unsealed.sealed(&sealed.seal().to_bytes());
        let began = boot_microseconds();
        match self.ledger.append_batch(&batch) {
            Ok(head) => {
                let took = Duration::from_micros(boot_microseconds().saturating_sub(began));
                Ok((Durable { batch, hash: head.hash, took }, sealed))
            }
            Err(error) => Err(WriteError { failure: failure_of(&error), source: Some(error) }),
        }
    }
}

fn failure_of(error: &AppendError) -> AppendFailure {
    match error {
        AppendError::Overtaken { .. } => AppendFailure::Overtaken,
        AppendError::OutcomeUnknown { .. } => AppendFailure::Unknown,
        _ => AppendFailure::NotWritten,
    }
}

/// A thread that writes for the writer. The pen goes there and comes back: it is never in two hands.
pub(super) struct Scribe<L> {
    desk: Option<SyncSender<(Pen<L>, Write)>>,
    done: Receiver<(Pen<L>, Written)>,
    thread: Option<JoinHandle<()>>,
}

impl<L: Ledger + Send + 'static> Scribe<L> {
    pub(super) fn start() -> io::Result<Scribe<L>> {
        let (desk, to_do) = sync_channel::<(Pen<L>, Write)>(1);
        let (give_back, done) = sync_channel(1);
        let thread = std::thread::Builder::new().name("tenure-scribe".into()).spawn(move || {
            for (mut pen, write) in to_do {
                let written = pen.write(write);
                // Nobody takes it back only if the writer's thread has panicked.
                let _ = give_back.send((pen, written));
            }
        })?;
        Ok(Scribe { desk: Some(desk), done, thread: Some(thread) })
    }

    /// Writes, and calls `meanwhile` again and again until that is done, at first at once; without a rest as long as that
    /// says that there is more to do.
    pub(super) fn write(
        &self,
        pen: Pen<L>,
        write: Write,
        mut meanwhile: impl FnMut() -> bool,
    ) -> (Pen<L>, Written) {
        let is_sent = self.desk.as_ref().is_some_and(|desk| desk.send((pen, write)).is_ok());
        assert!(is_sent, "the thread that writes has ended by a panic");
        loop {
            let rest = if meanwhile() { Duration::ZERO } else { LOOK };
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
const LOOK: Duration = Duration::from_micros(100);

impl<L> Drop for Scribe<L> {
    fn drop(&mut self) {
        self.desk = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
