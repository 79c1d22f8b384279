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
    /// The newest state that is on the disk.
    written: Mutex<u64>,
}

/// A state that is to be written.
pub(super) struct Turn {
    number: u64,
    stored: Stored,
}

impl Writer {
    pub(super) fn new(store: Store) -> Self {
        Self { store: Arc::new(store), turns: AtomicU64::new(0), written: Mutex::new(0) }
    }

    /// The next state. To be called in the order of the states: under the lock of the device.
    pub(super) fn turn(&self, stored: Stored) -> Turn {
        Turn { number: self.turns.fetch_add(1, Ordering::Relaxed) + 1, stored }
    }

    /// Returns once this state, or a newer one, is on the disk.
    pub(super) async fn write(&self, turn: Turn) -> Result<(), Problem> {
        let mut written = self.written.lock().await;
        if *written >= turn.number {
            return Ok(());
        }
        let store = self.store.clone();
        let done = tokio::task::spawn_blocking(move || store.write(&turn.stored)).await;
        match done {
            Ok(Ok(())) => {
                *written = turn.number;
                Ok(())
            }
            // The path says too much to whoever is only connected; whoever runs the server finds it in the guide.
            _ => Err(Problem::new(
                ProblemCode::StorageFailed,
                "the device does it, but could not store it: after a restart it is as before; whoever runs the server \
                 looks at the disk of its data directory",
            )),
        }
    }
}
