//! Names that say whose they are, and files that must not stay.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_gate::git;

/// What all names of files begin with. The second is for trees where git ignores the first.
const FILE_PREFIXES: [&str; 2] = [".tenure-canary-", "tenure-canary-"];

/// What all names of sessions begin with.
const SESSION_PREFIX: &str = "tenure-doctor-";

/// Canaries of one working tree. None of them outlives this.
#[derive(Debug, Clone)]
pub struct Canaries {
    root: PathBuf,
    prefix: &'static str,
    files: Arc<CanaryFiles>,
}

#[derive(Debug, Default)]
struct CanaryFiles(Mutex<Vec<PathBuf>>);

impl Canaries {
    /// For this tree. Nothing, if git ignores all such names: then nobody asks for them.
    pub fn new(root: &Path) -> Option<Self> {
        let is_free = |beginning: &&str| {
            let name = PathBuf::from(format!("{beginning}0"));
            // Where git does not say, nothing is taken for ignored, by the gate neither.
            !git::ignored_paths(root, std::slice::from_ref(&name)).unwrap_or_default().contains(&name)
        };
        let beginning = FILE_PREFIXES.into_iter().find(is_free)?;
        Some(Self { root: root.to_owned(), prefix: beginning, files: Arc::default() })
    }

    /// A path that nobody has and nothing is at.
    pub fn next(&self) -> PathBuf {
        let path = self.root.join(format!("{}{}", self.prefix, random()));
        self.files.0.lock().push(path.clone());
        path
    }

    /// The tree that they are for.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Removes whatever is left of all of them.
    pub fn remove(&self) {
        self.files.remove();
    }
}

impl Drop for CanaryFiles {
    fn drop(&mut self) {
        self.remove();
    }
}

impl CanaryFiles {
    fn remove(&self) {
        for path in self.0.lock().drain(..) {
            // Almost always there is none. Inside a guard even to remove what is not there would take a lease.
            if path.symlink_metadata().is_ok() {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// The name of a session that nobody has.
pub fn new_session_name() -> String {
    format!("{SESSION_PREFIX}{}", random())
}

/// Sixteen letters that nobody can guess.
fn random() -> String {
    let mut bytes = [0; 8];
    // Where there is no such file, the process is still another one than all others.
    if File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).is_err() {
        bytes = u64::from(std::process::id()).to_be_bytes();
    }
    hex::encode(bytes)
}
