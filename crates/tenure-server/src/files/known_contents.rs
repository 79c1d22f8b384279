//! What sessions know of files: a write over what has changed since objects, once.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use parking_lot::Mutex;
use rustix::fs::OFlags;
use tenure_core::kernel::{Holder, Resource};

/// The most that is remembered. What is forgotten is not objected to.
const MAX_ENTRIES: usize = 100_000;
/// Larger files are not looked into.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A file's content, by its hash.
pub(super) type ContentHash = [u8; 32];

/// What each session last read or wrote of each file. In memory only: after a restart nothing is objected to that was read
/// before.
#[derive(Default)]
pub(super) struct KnownContents(Mutex<HashMap<(Holder, Resource), ContentHash>>);

impl KnownContents {
    pub(super) fn record(&self, session: &Holder, resource: &Resource, content: ContentHash) {
        let mut known = self.0.lock();
        if known.len() >= MAX_ENTRIES {
            known.clear();
        }
        known.insert((session.clone(), resource.clone()), content);
    }

    /// Whether a session knows another content than this. It is asked once: the second time it knows.
    pub(super) fn is_stale(&self, session: &Holder, resource: &Resource, content: ContentHash) -> bool {
        let mut known = self.0.lock();
        match known.get_mut(&(session.clone(), resource.clone())) {
            Some(before) if *before != content => {
                *before = content;
                true
            }
            _ => false,
        }
    }

    pub(super) fn forget(&self, session: &Holder) {
        let mut known = self.0.lock();
        known.retain(|(holder, _), _| holder != session);
    }
}

/// Opens a file to be read. Nothing for what is none, or is larger than that. Whoever opens a pipe would wait for somebody to
/// write into it, perhaps for ever.
pub(super) fn open(path: &Path, max_bytes: u64) -> Option<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let about = file.metadata().ok()?;
    (about.is_file() && about.len() <= max_bytes).then_some(file)
}

/// What a file holds now; nothing if that cannot be said, or it is too large. It reads the disk.
pub(super) fn hash_file(path: &Path) -> Option<ContentHash> {
    let mut file = open(path, MAX_FILE_BYTES)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(*hasher.finalize().as_bytes()),
            count => {
                hasher.update(&buffer[..count]);
            }
        }
    }
}
