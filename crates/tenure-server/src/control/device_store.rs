//! Persistent state of the virtual device: `device.json` in the data directory.
//!
//! The file is replaced atomically, and durable when a write returns. A file that cannot be parsed prevents the start: a
//! device that started afresh would overwrite, with its next change, data that could still be recovered.

use std::fs::File;
use std::io;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_control::{Problem, ProblemCode};
use tenure_device::{PersistentState, PersistentStateError};
use thiserror::Error;
use tokio::sync::Mutex;

use crate::secret_file;
use crate::secret_file::SecretFileError;

const NAME: &str = "device.json";
/// Many times more than 32 presets take.
const MAX_BYTES: u64 = 1 << 20;

/// Why nobody knows what the device keeps, or why it could not be kept. Each says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceStoreError {
    /// The file was written by another version.
    #[error("{} has version {found}, which this version of tenure does not know; start the version that wrote it, or \
             move the file away: then the device starts as a new one, without its presets", path.display())]
    Version {
        path: PathBuf,
        /// Which version it says that it has.
        found: u64,
    },
    /// It is not as it was written.
    #[error("{} is damaged ({what}), so nobody knows what the device was set to; put back a copy, or delete it: then the \
             device starts as a new one, without its presets", path.display())]
    Damaged { path: PathBuf, what: String },
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] SecretFileError),
}

/// Where the device keeps what outlives a restart.
pub(super) struct DeviceStore {
    path: PathBuf,
}

impl DeviceStore {
    /// Reads what the device kept in this data directory. Where there is nothing yet, it is a new one. It waits for the disk.
    pub(super) fn open(data: &Path) -> Result<(Self, PersistentState), DeviceStoreError> {
        let path = data.join(NAME);
        let stored = read(&path)?.unwrap_or_default();
        Ok((Self { path }, stored))
    }

    /// Keeps this from now on. When it returns, it is on the disk; if it fails, what was there still is. It waits for the
    /// disk, and the caller has the directory's lock.
    pub(super) fn write(&self, stored: &PersistentState) -> Result<(), DeviceStoreError> {
        Ok(secret_file::write(&self.path, &stored.to_json())?)
    }
}

fn read(path: &Path) -> Result<Option<PersistentState>, DeviceStoreError> {
    let damaged = |what: String| DeviceStoreError::Damaged { path: path.into(), what };
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::InvalidData => damaged("it is no text".to_owned()),
        _ => SecretFileError::Io { path: path.into(), done: "read", source }.into(),
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(damaged("it is larger than any that was written".to_owned()));
    }
    match PersistentState::from_json(&text) {
        Ok(stored) => Ok(Some(stored)),
        Err(PersistentStateError::UnknownVersion(found)) => {
            Err(DeviceStoreError::Version { path: path.into(), found })
        }
        Err(PersistentStateError::Damaged(what)) => Err(damaged(what)),
    }
}

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
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use serde_json::{Value, json};
    use tenure_control::DeviceClock;
    use tenure_core::kernel::Tick;
    use tenure_device::VirtualDevice;

    use super::*;

    /// What a device keeps that somebody has used.
    fn used(name: &str) -> PersistentState {
        let mut device = VirtualDevice::new(PersistentState::default(), DeviceClock::new(Tick(0), 0));
        let mut execute = |command: &str, fields: Value| {
            let fields = fields.as_object().cloned().unwrap_or_default();
            assert!(device.execute(command, fields, Tick(0)).expect("it is carried out").must_store);
        };
        execute("settings.set", json!({ "deviceName": name }));
        execute("presets.save", json!({ "name": "Evening light" }));
        device.persistent_state()
    }

    fn open_error(data: &Path) -> DeviceStoreError {
        DeviceStore::open(data).err().expect("it does not open")
    }

    #[test]
    fn a_written_state_is_read_after_a_restart() {
        let data = tempfile::tempdir().unwrap();
        let (store, stored) = DeviceStore::open(data.path()).unwrap();
        assert_eq!(stored, PersistentState::default());
        assert!(!data.path().join(NAME).exists(), "to look is not to write");
        for name in ["Stairs", "Hall"] {
            store.write(&used(name)).unwrap();
            assert_eq!(DeviceStore::open(data.path()).unwrap().1, used(name));
        }
        let mode = data.path().join(NAME).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_write_interrupted_by_a_crash_leaves_the_previous_state() {
        let data = tempfile::tempdir().unwrap();
        let (store, _) = DeviceStore::open(data.path()).unwrap();
        store.write(&used("Stairs")).unwrap();
        fs::write(data.path().join("device.json.new"), "{\"version\":1,").unwrap();
        assert_eq!(DeviceStore::open(data.path()).unwrap().1, used("Stairs"));
        store.write(&used("Hall")).unwrap();
        assert_eq!(DeviceStore::open(data.path()).unwrap().1, used("Hall"));
    }

    #[test]
    fn a_failed_write_leaves_the_previous_state() {
        let data = tempfile::tempdir().unwrap();
        let (store, _) = DeviceStore::open(data.path()).unwrap();
        store.write(&used("Stairs")).unwrap();
        // What stands in the way of the new file cannot be removed.
        fs::create_dir(data.path().join("device.json.new")).unwrap();
        assert!(matches!(store.write(&used("Hall")), Err(DeviceStoreError::File(_))));
        assert_eq!(DeviceStore::open(data.path()).unwrap().1, used("Stairs"));
    }

    #[test]
    fn a_damaged_file_is_reported_and_kept() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join(NAME);
        let whole = used("Stairs").to_json();
        let too_large = " ".repeat(2 << 20);
        let cases = [
            Vec::new(),
            whole.as_bytes()[..whole.len() / 2].to_vec(),
            vec![0xFF; 100],
            too_large.into_bytes(),
            whole.replace("\"maxFps\": 120", "\"maxFps\": 241").into_bytes(),
        ];
        for bytes in cases {
            fs::write(&path, &bytes).unwrap();
            let error = open_error(data.path());
            assert!(matches!(error, DeviceStoreError::Damaged { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains(path.to_str().unwrap()) && text.contains("put back a copy"), "{text}");
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
    }

    #[test]
    fn an_unknown_version_is_reported_with_a_remedy() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(NAME), "{\"version\":2,\"more\":true}").unwrap();
        let error = open_error(data.path());
        assert!(matches!(error, DeviceStoreError::Version { found: 2, .. }), "{error}");
        assert!(error.to_string().contains("start the version that wrote it"), "{error}");
    }

    #[test]
    fn an_unreadable_file_is_not_treated_as_missing() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join(NAME)).unwrap();
        assert!(matches!(open_error(data.path()), DeviceStoreError::File(_)));
    }

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
