//! What the virtual device keeps: `device.json` in the data directory.
//!
//! The file is there whole or not at all, and durable when a write returns. One that cannot be understood stops the
//! start: a device that began anew by itself would overwrite with its next change what somebody could still have saved.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tenure_control::{PersistentState, PersistentStateError};
use thiserror::Error;

use crate::secret_file::{self, SecretFileError};

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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::{Value, json};
    use tenure_control::{DeviceClock, VirtualDevice};
    use tenure_core::kernel::Tick;

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
}
