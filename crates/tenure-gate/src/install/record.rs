//! What Tenure remembers of a file that it changed, so that it can be put back.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::person::read;
use super::{Change, InstallError, Mode, Place};

/// What is remembered of one file.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Record {
    /// The form of this record. Another one is not understood, and then nothing is remembered.
    version: u32,
    path: String,
    /// The digest of what we wrote. While the file has it, nobody changed it.
    pub installed: String,
    /// Whether there was a file before; its content lies beside this record.
    pub had_original: bool,
    /// How many of the folders above it, from the nearest, we made.
    pub folders: usize,
    /// Members that we made, to be taken out when they are empty.
    pub made: Vec<String>,
    pub command: String,
    #[serde(skip)]
    pub original: Option<Vec<u8>>,
}

impl Record {
    /// A record of `content`, which is about to be written.
    pub fn new(path: &Path, content: &[u8], original: Option<Vec<u8>>) -> Self {
        let path = path.display().to_string();
        let installed = digest(content);
        Self { version: 1, path, installed, had_original: original.is_some(), original, ..Self::default() }
    }

    /// What is remembered of this file. A record that is damaged is none: then our entries are taken out one by one.
    pub fn load(place: &Place, path: &Path) -> Result<Option<Self>, InstallError> {
        let [kept, original] = names(place, path);
        let Some(bytes) = read(&kept)? else { return Ok(None) };
        let Ok(mut record) = serde_json::from_slice::<Record>(&bytes) else { return Ok(None) };
        record.original = if record.had_original { read(&original)? } else { None };
        let is_whole = record.version == 1 && record.had_original == record.original.is_some();
        Ok(is_whole.then_some(record))
    }

    /// Whether the file is as we left it.
    pub fn is_untouched(&self, content: &[u8]) -> bool {
        self.installed == digest(content)
    }

    /// What has to be done so that it is remembered.
    pub fn keep(&self, place: &Place, path: &Path) -> Result<Vec<Change>, InstallError> {
        let [kept, original] = names(place, path);
        let mut changes = missing_folders(&kept);
        let mut write = |path: PathBuf, content: Vec<u8>| -> Result<(), InstallError> {
            let before = read(&path)?;
            changes.push(Change::Write { path, content, mode: Mode::Private, before });
            Ok(())
        };
        if let Some(content) = &self.original {
            write(original, content.clone())?;
        }
        let record = serde_json::to_vec_pretty(self).map_err(io::Error::other);
        write(kept.clone(), record.map_err(InstallError::disk(&kept))?)?;
        Ok(changes)
    }

    /// What has to be done so that it is forgotten.
    pub fn forget(place: &Place, path: &Path) -> Result<Vec<Change>, InstallError> {
        let mut changes = Vec::new();
        for path in names(place, path) {
            changes.extend(read(&path)?.map(|before| Change::Remove { path, before }));
        }
        changes.push(Change::RemoveFolder { path: place.backups.clone() });
        Ok(changes)
    }
}

/// The folders above `path` that are not there yet, in the order in which they are made.
pub fn missing_folders(path: &Path) -> Vec<Change> {
    let missing = path.ancestors().skip(1).take_while(|folder| !folder.exists());
    let mut changes: Vec<_> = missing.map(|folder| Change::MakeFolder { path: folder.to_owned() }).collect();
    changes.reverse();
    changes
}

/// How many of the folders above `path` are ours once it is written: those that are missing now, and those that we made
/// for another file.
pub fn our_folders(place: &Place, path: &Path) -> usize {
    let missing = missing_folders(path).len();
    let made: Vec<PathBuf> = all(place)
        .flat_map(|record: Record| {
            let file = PathBuf::from(&record.path);
            file.ancestors().skip(1).take(record.folders).map(Path::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let above = path.ancestors().skip(1 + missing);
    missing + above.take_while(|folder| made.iter().any(|made| made == folder)).count()
}

/// All records but those that are damaged.
fn all(place: &Place) -> impl Iterator<Item = Record> {
    let paths = fs::read_dir(&place.backups).into_iter().flatten().flatten().map(|entry| entry.path());
    let records = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    records.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok())
}

/// What has to be done about the folders that we made above `path`.
pub fn remove_folders(path: &Path, count: usize) -> impl Iterator<Item = Change> {
    path.ancestors().skip(1).take(count).map(|folder| Change::RemoveFolder { path: folder.to_owned() })
}

/// Where the record and the original lie.
fn names(place: &Place, path: &Path) -> [PathBuf; 2] {
    let id = &digest(path.as_os_str().as_encoded_bytes())[..32];
    [place.backups.join(format!("{id}.json")), place.backups.join(format!("{id}.original"))]
}

fn digest(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}
