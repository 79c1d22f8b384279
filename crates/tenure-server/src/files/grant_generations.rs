//! How long a guard may rely on what it was told, without asking again: a mark for each owner's process, in a file that guards
//! read. It changes before anybody is told that the process has lost something.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tenure_api::GrantGeneration;
use tenure_core::kernel::{FileSession, RecordedProcess, Resource, Tick};

use super::file_event_observer::FileEventListener;

/// Stands in the place of a process for all of them: its mark changes when a session gets a file.
fn any() -> RecordedProcess {
    RecordedProcess::default()
}

/// The marks of all processes that a guard has asked for.
pub(crate) struct GrantGenerations {
    folder: PathBuf,
    files: Mutex<HashMap<RecordedProcess, GenerationFile>>,
}

struct GenerationFile {
    path: PathBuf,
    /// Kept open: whoever reads it reads this one, whatever becomes of its name.
    file: File,
    number: u64,
}

impl GrantGenerations {
    /// What an earlier server left behind counts no longer, and whoever still reads it finds that out.
    pub(super) fn open(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for old in entries.map(|entry| entry.path()) {
            // A reader sees that the file has no name any more.
            let _ = fs::remove_file(old);
        }
        Self { folder: folder.to_owned(), files: Mutex::default() }
    }

    /// The mark of a process. Nothing where none can be made: then a guard asks each time. It writes to the disk.
    pub(super) fn generation_of(&self, process: &RecordedProcess) -> Option<GrantGeneration> {
        let mut marks = self.files.lock();
        if !marks.contains_key(process) {
            let mark = self.make(process).ok()?;
            marks.insert(process.clone(), mark);
        }
        let mark = marks.get(process)?;
        Some(GrantGeneration { file: mark.path.to_str()?.to_owned(), mark: mark.number })
    }

    /// The mark that changes when any session gets a file. To be asked while the state is read, and once before, because it may
    /// write to the disk.
    pub(super) fn generation_of_any(&self) -> Option<GrantGeneration> {
        self.generation_of(&any())
    }

    /// Whether guards of this process rely on anything.
    pub(super) fn is_tracked(&self, process: &RecordedProcess) -> bool {
        self.files.lock().contains_key(process)
    }

    /// Nobody relies any longer on what this process was granted before.
    pub(super) fn invalidate(&self, process: &RecordedProcess) {
        let mut marks = self.files.lock();
        let Some(mark) = marks.get_mut(process) else { return };
        mark.number = mark.number.wrapping_add(1);
        if mark.file.write_all_at(&mark.number.to_le_bytes(), 0).is_err() {
            // A mark that cannot be changed is taken away: that is seen too.
            let _ = fs::remove_file(&mark.path);
            marks.remove(process);
        }
    }

    pub(super) fn remove(&self, process: &RecordedProcess) {
        self.invalidate(process);
        if let Some(mark) = self.files.lock().remove(process) {
            let _ = fs::remove_file(mark.path);
        }
    }

    fn make(&self, process: &RecordedProcess) -> io::Result<GenerationFile> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.folder.join(blake3::hash(process.to_string().as_bytes()).to_hex().as_str());
        let mut options = File::options();
        let file = options.create_new(true).read(true).write(true).mode(0o600).open(&path)?;
        // From anywhere: no number of an earlier file of this name comes again.
        let number = getrandom::u64().map_err(io::Error::other)?;
        file.write_all_at(&number.to_le_bytes(), 0)?;
        Ok(GenerationFile { path, file, number })
    }
}

impl FileEventListener for GrantGenerations {
    fn lease_began(&self) {
        self.invalidate(&any());
    }

    fn lease_ended(&self, _: &Resource, session: &FileSession, _: Tick) {
        self.invalidate(&session.process);
    }

    fn session_ended(&self, session: &FileSession) {
        self.invalidate(&session.process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(text: &str) -> RecordedProcess {
        RecordedProcess::parse(text).unwrap()
    }

    fn read(standing: &GrantGeneration) -> Option<u64> {
        let bytes: [u8; 8] = fs::read(&standing.file).ok()?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    // S4-15
    #[test]
    fn a_generation_changes_when_its_process_loses_a_lease() {
        let folder = tempfile::tempdir().unwrap();
        let standings = GrantGenerations::open(folder.path());
        let (one, other) = (process("one"), process("other"));
        let before = standings.generation_of(&one).unwrap();
        let beside = standings.generation_of(&other).unwrap();
        assert_eq!(read(&before), Some(before.mark));
        assert_eq!(standings.generation_of(&one), Some(before.clone()), "asked again, it is the same");
        standings.invalidate(&process("one"));
        assert_ne!(read(&before), Some(before.mark));
        assert_eq!(read(&beside), Some(beside.mark), "somebody else's stays");
        let after = standings.generation_of(&one).unwrap();
        assert_eq!(read(&after), Some(after.mark));
        standings.remove(&process("one"));
        assert_eq!(read(&after), None);
    }

    // H2
    #[test]
    fn a_granted_lease_changes_the_generation_of_any_session() {
        let folder = tempfile::tempdir().unwrap();
        let standings = GrantGenerations::open(folder.path());
        let before = standings.generation_of_any().unwrap();
        assert_eq!(read(&before), Some(before.mark));
        standings.invalidate(&process("one"));
        assert_eq!(read(&before), Some(before.mark));
        standings.lease_began();
        assert_ne!(read(&before), Some(before.mark));
    }

    #[test]
    fn generations_of_an_earlier_server_are_invalid() {
        let folder = tempfile::tempdir().unwrap();
        let standing = GrantGenerations::open(folder.path()).generation_of(&process("one")).unwrap();
        let reader = File::open(&standing.file).unwrap();
        let next = GrantGenerations::open(folder.path());
        assert_eq!(rustix::fs::fstat(&reader).unwrap().st_nlink, 0, "who reads on sees that it is gone");
        assert_ne!(next.generation_of(&process("one")).unwrap().mark, standing.mark);
    }
}
