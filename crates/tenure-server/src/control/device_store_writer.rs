//! Writes what the device keeps, in the order in which it changed, beside the lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_control::device::PersistentState;
use tenure_control::{Problem, ProblemCode};
use tokio::sync::Mutex;

use super::device_store::DeviceStore;

/// Writes one state after the other.
pub(super) struct DeviceStoreWriter {
    store: Arc<DeviceStore>,
    last_number: Arc<AtomicU64>,
    last_written: Arc<Mutex<VersionedState>>,
}

/// A state that is to be written, or was.
#[derive(Clone)]
pub(super) struct VersionedState {
    number: u64,
    stored: PersistentState,
}

/// A state could not be written.
pub(super) struct DeviceWriteError {
    /// What the disk has instead; nothing if a newer state is on its way there.
    pub(super) on_disk: Option<PersistentState>,
}

impl DeviceStoreWriter {
    /// A writer after `stored`, which is on the disk.
    pub(super) fn new(store: DeviceStore, stored: PersistentState) -> Self {
        let last_written = Arc::new(Mutex::new(VersionedState { number: 0, stored }));
        Self { store: Arc::new(store), last_number: Arc::default(), last_written }
    }

    /// The next state. To be called in the order of the states: under the lock of the device.
    pub(super) fn next_state(&self, stored: PersistentState) -> VersionedState {
        VersionedState { number: self.last_number.fetch_add(1, Ordering::Relaxed) + 1, stored }
    }

    /// Returns once this state, or a newer one, is on the disk. Whoever does not wait for that lets it go on all the same:
    /// a thread that writes cannot be called back, and the next one must not write beside it.
    pub(super) async fn write(&self, turn: VersionedState) -> Result<(), DeviceWriteError> {
        let (store, turns, written) =
            (self.store.clone(), self.last_number.clone(), self.last_written.clone());
        let writing = tokio::spawn(write(store, turns, written, turn));
        writing.await.unwrap_or(Err(DeviceWriteError { on_disk: None }))
    }
}

async fn write(
    store: Arc<DeviceStore>,
    turns: Arc<AtomicU64>,
    written: Arc<Mutex<VersionedState>>,
    turn: VersionedState,
) -> Result<(), DeviceWriteError> {
    let mut written = written.lock().await;
    if written.number >= turn.number {
        return Ok(());
    }
    let next = turn.clone();
    match tokio::task::spawn_blocking(move || store.write(&next.stored)).await {
        Ok(Ok(())) => {
            *written = turn;
            Ok(())
        }
        _ => {
            let is_newest = turns.load(Ordering::Relaxed) == turn.number;
            Err(DeviceWriteError { on_disk: is_newest.then(|| written.stored.clone()) })
        }
    }
}

/// What whoever asked for it is told. The path says too much to who is only connected.
pub(super) fn storage_failed() -> Problem {
    Problem::new(
        ProblemCode::StorageFailed,
        "it could not be stored, and was taken back; whoever runs the server looks at the disk of its data directory",
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;

    /// Whoever asked may hang up in the middle of a write. It goes on, and the next one must wait for it: two at once would
    /// write over each other.
    #[tokio::test]
    async fn an_abandoned_write_completes_before_the_next_one_starts() {
        let data = tempfile::tempdir().unwrap();
        let (store, stored) = DeviceStore::open(data.path()).unwrap();
        let writer = DeviceStoreWriter::new(store, stored.clone());
        let turn = writer.next_state(stored);
        assert!(writer.write(turn).now_or_never().is_none(), "it waits for the disk");
        for _ in 0..500 {
            if writer.last_written.lock().await.number == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it is on the disk, and nobody knows");
    }
}
