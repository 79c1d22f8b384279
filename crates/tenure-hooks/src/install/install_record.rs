//! What Tenure remembers of a file that it changed, so that it can be put back.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::user_folders::read_file;
use super::{FileMode, InstallContext, InstallError, PlannedChange};

/// What is remembered of one file.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct InstallRecord {
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

impl InstallRecord {
    /// A record of `content`, which is about to be written.
    pub fn new(path: &Path, content: &[u8], original: Option<Vec<u8>>) -> Self {
        let path = path.display().to_string();
        let installed = digest(content);
        Self { version: 1, path, installed, had_original: original.is_some(), original, ..Self::default() }
    }

    /// What is remembered of this file. A record that is damaged is none: then our entries are taken out one by one.
    pub fn load(place: &InstallContext, path: &Path) -> Result<Option<Self>, InstallError> {
        let [kept, original] = record_paths(place, path);
        let Some(bytes) = read_file(&kept)? else { return Ok(None) };
        let Ok(mut record) = serde_json::from_slice::<InstallRecord>(&bytes) else { return Ok(None) };
        record.original = if record.had_original { read_file(&original)? } else { None };
        let is_whole = record.version == 1 && record.had_original == record.original.is_some();
        Ok(is_whole.then_some(record))
    }

    /// Whether the file is as we left it.
    pub fn is_untouched(&self, content: &[u8]) -> bool {
        self.installed == digest(content)
    }

    /// What has to be done so that it is remembered.
    pub fn plan_save(&self, place: &InstallContext, path: &Path) -> Result<Vec<PlannedChange>, InstallError> {
        let [kept, original] = record_paths(place, path);
        let mut changes = missing_folders(&kept);
        let mut write = |path: PathBuf, content: Vec<u8>| -> Result<(), InstallError> {
            let before = read_file(&path)?;
            changes.push(PlannedChange::Write { path, content, mode: FileMode::Private, before });
            Ok(())
        };
        if let Some(content) = &self.original {
            write(original, content.clone())?;
        }
        let record = serde_json::to_vec_pretty(self).map_err(io::Error::other);
        write(kept.clone(), record.map_err(InstallError::io_error(&kept))?)?;
        Ok(changes)
    }

    /// What has to be done so that it is forgotten.
    pub fn plan_removal(place: &InstallContext, path: &Path) -> Result<Vec<PlannedChange>, InstallError> {
        let mut changes = Vec::new();
        for path in record_paths(place, path) {
            changes.extend(read_file(&path)?.map(|before| PlannedChange::Remove { path, before }));
        }
        changes.push(PlannedChange::RemoveFolder { path: place.backups.clone() });
        Ok(changes)
    }
}

/// The folders above `path` that are not there yet, in the order in which they are made.
pub fn missing_folders(path: &Path) -> Vec<PlannedChange> {
    let missing = path.ancestors().skip(1).take_while(|folder| !folder.exists());
    let mut changes: Vec<_> =
        missing.map(|folder| PlannedChange::MakeFolder { path: folder.to_owned() }).collect();
    changes.reverse();
    changes
}

/// How many of the folders above `path` are ours once it is written: those that are missing now, and those that we made
/// for another file.
pub fn count_own_folders(place: &InstallContext, path: &Path) -> usize {
    let missing = missing_folders(path).len();
    let made: Vec<PathBuf> = all(place)
        .flat_map(|record: InstallRecord| {
            let file = PathBuf::from(&record.path);
            file.ancestors().skip(1).take(record.folders).map(Path::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let above = path.ancestors().skip(1 + missing);
    missing + above.take_while(|folder| made.iter().any(|made| made == folder)).count()
}

/// All records but those that are damaged.
fn all(place: &InstallContext) -> impl Iterator<Item = InstallRecord> {
    let paths = fs::read_dir(&place.backups).into_iter().flatten().flatten().map(|entry| entry.path());
    let records = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    records.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok())
}

/// What has to be done about the folders that we made above `path`.
pub fn remove_folders(path: &Path, count: usize) -> impl Iterator<Item = PlannedChange> {
    path.ancestors().skip(1).take(count).map(|folder| PlannedChange::RemoveFolder { path: folder.to_owned() })
}

/// Where the record and the original lie.
fn record_paths(place: &InstallContext, path: &Path) -> [PathBuf; 2] {
    let id = &digest(path.as_os_str().as_encoded_bytes())[..32];
    [place.backups.join(format!("{id}.json")), place.backups.join(format!("{id}.original"))]
}

fn digest(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}
