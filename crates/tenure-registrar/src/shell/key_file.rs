//! The node's key in the data directory, and the one that takes its place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tenure_ledger::signing::{KeyFileError, NodeKey};

use super::replay::Replay;
use super::service::ServiceError;

/// The file of the node's key in a data directory.
pub fn key_file(data: &Path) -> PathBuf {
    data.join("node.key")
}

fn next_key_file(data: &Path) -> PathBuf {
    data.join("node.key.next")
}

/// The key of this node: made at the first start, and never again.
pub(crate) fn node_key(data: &Path, replay: &Replay) -> Result<NodeKey, ServiceError> {
    if replay.keyring().first().is_none() && !key_file(data).exists() {
        return Ok(NodeKey::create(&key_file(data))?);
    }
    find_key(data, replay)
}

/// The key that may sign now. A change of keys may have been interrupted after the ledger knew of it.
pub(crate) fn find_key(data: &Path, replay: &Replay) -> Result<NodeKey, ServiceError> {
    let is_live = |key: &NodeKey| replay.keyring().live().any(|live| live == key.public_key());
    let next = next_key_file(data);
    if next.exists() {
        let key = NodeKey::load(&next)?;
        if is_live(&key) {
            fs::rename(&next, key_file(data))?;
            sync(data)?;
            return Ok(key);
        }
    }
    let path = key_file(data);
    if !path.exists() {
        return Err(ServiceError::KeyMissing(path));
    }
    Ok(NodeKey::load(&path)?)
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
