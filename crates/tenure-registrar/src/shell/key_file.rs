//! The node's key in the data directory, and the one that takes its place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tenure_ledger::signing::{KeyFileError, NodeKey};

use super::replay::Replay;
use super::service::ServiceError;
use super::writer::StartError;

/// The file of the node's key in a data directory.
pub fn key_file(data: &Path) -> PathBuf {
    data.join("node.key")
}

fn next_key_file(data: &Path) -> PathBuf {
    data.join("node.key.next")
}

/// A key that may sign, and where it was found.
#[derive(Debug)]
pub(crate) struct FoundKey {
    pub(crate) key: NodeKey,
    /// A change of keys was interrupted after the ledger knew of it.
    is_next: bool,
}

/// The key of this node: made at the first start, and never again.
pub(crate) fn node_key(data: &Path, replay: &Replay) -> Result<FoundKey, ServiceError> {
    if replay.keyring().first().is_none() && !key_file(data).exists() {
        return Ok(FoundKey { key: NodeKey::create(&key_file(data))?, is_next: false });
    }
    find_key(data, replay)
}

/// The key that may sign now. One that may not is no use: whatever it signed would not be believed.
pub(crate) fn find_key(data: &Path, replay: &Replay) -> Result<FoundKey, ServiceError> {
    let keyring = replay.keyring();
    let is_live = |key: &NodeKey| keyring.live().any(|live| live == key.public_key());
    let next = next_key_file(data);
    if next.exists() {
        let key = NodeKey::load(&next)?;
        if is_live(&key) {
            return Ok(FoundKey { key, is_next: true });
        }
    }
    let path = key_file(data);
    if !path.exists() {
        return Err(ServiceError::KeyMissing(path));
    }
    let key = NodeKey::load(&path)?;
    if keyring.first().is_some() && !is_live(&key) {
        return Err(StartError::ForeignKey(key.id()).into());
    }
    Ok(FoundKey { key, is_next: false })
}

impl FoundKey {
    /// Ends a change of keys that was interrupted. Only once the record that tells of it is known to be durable:
    /// until then the key before it is still needed.
    pub(crate) fn settle(self, data: &Path) -> io::Result<NodeKey> {
        if self.is_next {
            fs::rename(next_key_file(data), key_file(data))?;
            sync(data)?;
        }
        Ok(self.key)
    }
}

/// A key that is to take the place of another.
pub(crate) struct NextKey {
    pub(crate) key: NodeKey,
    data: PathBuf,
}

impl NextKey {
    /// Makes it, and keeps it beside the other until the ledger knows of it. One that was left behind before that is
    /// nobody's.
    pub(crate) fn make(data: &Path) -> Result<NextKey, KeyFileError> {
        let path = next_key_file(data);
        if path.exists() {
            fs::remove_file(&path).map_err(|source| KeyFileError::Io {
                path: path.clone(),
                done: "removed",
                source,
            })?;
        }
        Ok(NextKey { key: NodeKey::create(&path)?, data: data.to_owned() })
    }

    /// It takes the place of the other.
    pub(crate) fn keep(self) -> io::Result<()> {
        fs::rename(next_key_file(&self.data), key_file(&self.data))?;
        sync(&self.data)
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
