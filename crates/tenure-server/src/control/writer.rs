//! Writes what the device keeps, in the order in which it changed, beside the lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_control::device::Stored;
use tenure_control::{Problem, ProblemCode};
use tokio::sync::Mutex;

use super::store::Store;

/// Writes one state after the other.
pub(super) struct Writer {
    store: Arc<Store>,
    turns: AtomicU64,
    /// What is on the disk.
    written: Mutex<Turn>,
}

/// A state that is to be written, or was.
#[derive(Clone)]
pub(super) struct Turn {
    number: u64,
    stored: Stored,
}

/// A state could not be written.
pub(super) struct Unwritten {
    /// What the disk has instead; nothing if a newer state is on its way there.
    pub(super) instead: Option<Stored>,
}

impl Writer {
    /// A writer after `stored`, which is on the disk.
    pub(super) fn new(store: Store, stored: Stored) -> Self {
        let written = Mutex::new(Turn { number: 0, stored });
        Self { store: Arc::new(store), turns: AtomicU64::new(0), written }
    }

    /// The next state. To be called in the order of the states: under the lock of the device.
    pub(super) fn turn(&self, stored: Stored) -> Turn {
        Turn { number: self.turns.fetch_add(1, Ordering::Relaxed) + 1, stored }
    }

    /// Returns once this state, or a newer one, is on the disk.
    pub(super) async fn write(&self, turn: Turn) -> Result<(), Unwritten> {
        let mut written = self.written.lock().await;
        if written.number >= turn.number {
            return Ok(());
        }
        let (store, next) = (self.store.clone(), turn.clone());
        match tokio::task::spawn_blocking(move || store.write(&next.stored)).await {
            Ok(Ok(())) => {
                *written = turn;
                Ok(())
            }
            _ => {
                let is_newest = self.turns.load(Ordering::Relaxed) == turn.number;
                Err(Unwritten { instead: is_newest.then(|| written.stored.clone()) })
            }
        }
    }
}

/// What whoever asked for it is told. The path says too much to who is only connected.
pub(super) fn not_stored() -> Problem {
    Problem::new(
        ProblemCode::StorageFailed,
        "it could not be stored, and was taken back; whoever runs the server looks at the disk of its data directory",
    )
}
