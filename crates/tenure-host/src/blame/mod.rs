//! Which session wrote the lines that are not committed yet.
//!
//! After each edit the content is compared with the one before: new lines belong to the session that edited, kept lines stay
//! with their author. Nothing of a file's content is stored, only a short digest of each line.

mod attribution;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io};

pub use attribution::LineAttribution;
use attribution::StoredAttribution;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AgentAuthor {
    /// The agent's session, or that of a subagent.
    pub session: String,
    pub agent: String,
    /// When it was seen, in milliseconds since 1970: for people to read, never to decide by.
    pub at: u64,
    /// What it was at, if it said.
    pub task: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineAuthor {
    Committed,
    Session(AgentAuthor),
    /// It is not as in HEAD, and nobody was seen writing it: a person, or a program that no hook sees.
    Unknown,
}

/// A line and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlamedLine {
    /// From 1. In the one line that stands for a whole file (see [`LineAttribution::blame_lines`]), 0.
    pub number: usize,
    /// The line without its end. What is not UTF-8 is shown as `�`.
    pub text: String,
    pub author: LineAuthor,
}

/// As many files as are kept. Then the oldest go.
const MAX_FILES: usize = 10_000;

/// A larger file is none of ours.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The attributions that are kept in a folder.
///
/// They say who wrote what, to a person who asks, and nothing is decided by them. So what is damaged or gone is no error:
/// then nobody is known to have written anything.
#[derive(Debug)]
pub struct AttributionStore {
    folder: PathBuf,
    max_files: usize,
    /// How many there are, at least roughly: others may write here too.
    count: AtomicUsize,
    next_temporary: AtomicUsize,
}

#[derive(Serialize, Deserialize)]
struct AttributionFile {
    version: u32,
    resource: String,
    #[serde(flatten)]
    stored: StoredAttribution,
}

impl AttributionStore {
    /// The store in this folder, which is made if it is not there.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Self::with_max_files(folder, MAX_FILES)
    }

    pub fn with_max_files(folder: &Path, max_files: usize) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let store = Self {
            folder: folder.to_owned(),
            max_files: max_files.max(1),
            count: AtomicUsize::new(0),
            next_temporary: AtomicUsize::new(0),
        };
        store.count.store(store.files()?.len(), Ordering::Relaxed);
        Ok(store)
    }

    /// What is known of this resource.
    pub fn load(&self, resource: &str) -> Option<LineAttribution> {
        let path = self.path(resource);
        let size = fs::metadata(&path).ok()?.len();
        if size > MAX_FILE_BYTES {
            return None;
        }
        let file: AttributionFile = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        // Another version, or another resource by a strange chance.
        if file.version != 1 || file.resource != resource {
            return None;
        }
        file.stored.into_attribution()
    }

    /// Keeps what is known of this resource, in place of what was.
    pub fn save(&self, resource: &str, attribution: &LineAttribution) -> io::Result<()> {
        let file = AttributionFile { version: 1, resource: resource.to_owned(), stored: attribution.into() };
        let content = serde_json::to_vec(&file).map_err(io::Error::other)?;
        let path = self.path(resource);
        let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
        let beside = self.folder.join(format!("unfinished-{}-{number}", std::process::id()));
        // Nobody reads a half. It is not synced: what a power cut takes is damaged, and that is no error.
        let is_new = !path.exists();
        let written = fs::write(&beside, content).and_then(|()| fs::rename(&beside, &path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written?;
        if is_new && self.count.fetch_add(1, Ordering::Relaxed) >= self.max_files {
            self.remove_oldest()?;
        }
        Ok(())
    }

    pub fn forget(&self, resource: &str) -> io::Result<()> {
        match fs::remove_file(self.path(resource)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => {
                removed?;
                let decrement = |count: usize| Some(count.saturating_sub(1));
                let _ = self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement);
                Ok(())
            }
        }
    }

    /// A twentieth more than needed, so that not every file looks at all others.
    fn remove_oldest(&self) -> io::Result<()> {
        let mut files = self.files()?;
        files.sort();
        let many = files.len().saturating_sub(self.max_files);
        let gone = if many == 0 { 0 } else { many + self.max_files / 20 };
        for (_, path) in files.iter().take(gone) {
            fs::remove_file(path)?;
        }
        self.count.store(files.len() - gone.min(files.len()), Ordering::Relaxed);
        Ok(())
    }

    /// Every file here, with when it was last written. What somebody left unfinished counts too, and grows old.
    fn files(&self) -> io::Result<Vec<(std::time::SystemTime, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file);
            files.extend(metadata.and_then(|metadata| Some((metadata.modified().ok()?, entry.path()))));
        }
        Ok(files)
    }

    fn path(&self, resource: &str) -> PathBuf {
        let id = blake3::hash(resource.as_bytes()).to_hex();
        self.folder.join(format!("{}.json", &id[..32]))
    }
}
