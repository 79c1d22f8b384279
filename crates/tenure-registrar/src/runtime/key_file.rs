//! The node's key in the data directory, and the one that takes its place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tenure_ledger::signing::{KeyFileError, LedgerSigningKey};

use super::replay::Replay;
use super::service::ServiceError;
use super::writer::StartError;

/// The file of the node's key in a data directory.
pub fn key_file_path(data: &Path) -> PathBuf {
    data.join("node.key")
}

fn next_key_file_path(data: &Path) -> PathBuf {
    data.join("node.key.next")
}

/// A key that may sign, and where it was found.
#[derive(Debug)]
pub(crate) struct LoadedKey {
    pub(crate) key: LedgerSigningKey,
    /// A change of keys was interrupted after the ledger knew of it.
    is_next: bool,
}

/// The key of this node: made at the first start, and never again.
pub(crate) fn load_or_create_key(data: &Path, replay: &Replay) -> Result<LoadedKey, ServiceError> {
    if replay.keyring().first().is_none() && !key_file_path(data).exists() {
        return Ok(LoadedKey { key: LedgerSigningKey::create(&key_file_path(data))?, is_next: false });
    }
    load_key(data, replay)
}

/// The key that may sign now. One that may not is no use: whatever it signed would not be believed.
pub(crate) fn load_key(data: &Path, replay: &Replay) -> Result<LoadedKey, ServiceError> {
    let keyring = replay.keyring();
    let is_active = |key: &LedgerSigningKey| keyring.active_keys().any(|live| live == key.public_key());
    let next = next_key_file_path(data);
    if next.exists() {
        let key = LedgerSigningKey::load(&next)?;
        if is_active(&key) {
            return Ok(LoadedKey { key, is_next: true });
        }
    }
    let path = key_file_path(data);
    if !path.exists() {
        return Err(ServiceError::KeyMissing(path));
    }
    let key = LedgerSigningKey::load(&path)?;
    if keyring.first().is_some() && !is_active(&key) {
        return Err(StartError::ForeignKey(key.id()).into());
    }
    Ok(LoadedKey { key, is_next: false })
}

impl LoadedKey {
    /// Ends a change of keys that was interrupted. Only once the record that tells of it is known to be durable:
    /// until then the key before it is still needed.
    pub(crate) fn finish_rotation(self, data: &Path) -> io::Result<LedgerSigningKey> {
        if self.is_next {
            fs::rename(next_key_file_path(data), key_file_path(data))?;
            sync_directory(data)?;
        }
        Ok(self.key)
    }
}

/// A key that is to take the place of another.
pub(crate) struct NextKey {
    pub(crate) key: LedgerSigningKey,
    data: PathBuf,
}

impl NextKey {
    /// Makes it, and keeps it beside the other until the ledger knows of it. One that was left behind before that is
    /// nobody's.
    pub(crate) fn create(data: &Path) -> Result<NextKey, KeyFileError> {
        let path = next_key_file_path(data);
        if path.exists() {
            fs::remove_file(&path).map_err(|source| KeyFileError::Io {
                path: path.clone(),
                action: "removed",
                source,
            })?;
        }
        Ok(NextKey { key: LedgerSigningKey::create(&path)?, data: data.to_owned() })
    }

    /// It takes the place of the other.
    pub(crate) fn install(self) -> io::Result<()> {
        fs::rename(next_key_file_path(&self.data), key_file_path(&self.data))?;
        sync_directory(&self.data)
    }
}

fn sync_directory(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
