//! What was granted, as long as it can be relied on without asking again.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::fstat;
use tenure_api::GrantGeneration;
use tenure_host::paths::fold_case;

use super::attribution::CallOwner;

/// The most that is remembered; then all of it is asked for anew.
const MAX_GRANTS: usize = 100_000;
/// The same for working trees.
const MAX_TREES: usize = 100;
/// How long is objected to what may be out of date, in microseconds. Programs that fail try another way at once, with what they
/// know; whoever reads again takes longer. For ever would be too long: then nobody could go on.
const OBJECTION_MICROSECONDS: u64 = 5_000_000;

/// Which files the owners below us may change.
#[derive(Debug, Default)]
pub struct GrantCache {
    files: HashMap<(CallOwner, PathBuf), (Arc<GrantVersionFile>, u64)>,
    marks: HashMap<String, Arc<GrantVersionFile>>,
    /// What somebody else changed before it was granted, after whoever has it now began: it may know only what was there
    /// before. Whatever takes something away from it is objected to, until a while after that was said first.
    objections: HashMap<(CallOwner, PathBuf), Option<u64>>,
    /// What sessions held in each working tree, and the mark under which they hold nothing more.
    held: HashMap<PathBuf, (Arc<GrantVersionFile>, u64, HashSet<OsString>)>,
}

impl GrantCache {
    pub fn add(&mut self, owner: CallOwner, path: PathBuf, standing: &GrantGeneration) {
        let Some(mark) = self.mark(standing) else { return };
        if self.files.len() >= MAX_GRANTS {
            self.files.clear();
        }
        self.files.insert((owner, path), (mark, standing.mark));
    }

    /// Whether this was granted, and nothing has ended since.
    pub fn holds(&self, owner: CallOwner, path: &Path) -> bool {
        let found = self.files.get(&(owner, path.to_path_buf()));
        found.is_some_and(|(mark, number)| mark.read() == Some(*number))
    }

    /// Everything that was granted to this owner, but for what another one has got since; it is forgotten.
    pub fn remove_owner(&mut self, owner: CallOwner) -> Vec<PathBuf> {
        let taken: Vec<PathBuf> =
            self.files.extract_if(|(other, _), _| *other == owner).map(|((_, path), _)| path).collect();
        let stands = |(mark, number): &(Arc<GrantVersionFile>, u64)| mark.read() == Some(*number);
        let is_anothers =
            |path: &PathBuf| self.files.iter().any(|((_, other), grant)| other == path && stands(grant));
        taken.into_iter().filter(|path| !is_anothers(path)).collect()
    }

    /// From now on changes that take something away are objected to.
    pub fn add_stale_content(&mut self, owner: CallOwner, path: PathBuf) {
        if self.objections.len() < MAX_GRANTS {
            self.objections.insert((owner, path), None);
        }
    }

    /// Whether such a change is to be objected to now.
    pub fn has_stale_content(&self, owner: CallOwner, path: &Path, now: u64) -> bool {
        if self.objections.is_empty() {
            return false;
        }
        let found = self.objections.get(&(owner, path.to_path_buf()));
        found.is_some_and(|reported_at| {
            reported_at.is_none_or(|at| now.saturating_sub(at) < OBJECTION_MICROSECONDS)
        })
    }

    pub fn mark_stale_content_reported(&mut self, owner: CallOwner, path: &Path, now: u64) {
        if let Some(reported_at) = self.objections.get_mut(&(owner, path.to_path_buf())) {
            reported_at.get_or_insert(now);
        }
    }

    /// Sessions hold these files in this tree, and no others while the mark stays.
    pub fn add_held(&mut self, root: PathBuf, held: &[PathBuf], standing: &GrantGeneration) {
        let Some(mark) = self.mark(standing) else { return };
        if self.held.len() >= MAX_TREES {
            self.held.clear();
        }
        let names = held.iter().map(|path| fold_case(path.as_os_str()).into_owned()).collect();
        self.held.insert(root, (mark, standing.mark, names));
    }

    /// Whether it is known that no session holds this file of this tree. Case is folded, as in a folder that does not tell it
    /// apart: the server decides then.
    pub fn is_known_unheld(&self, root: &Path, path: &Path) -> bool {
        let known = self.held.get(root).filter(|(mark, number, _)| mark.read() == Some(*number));
        known.is_some_and(|(_, _, held)| !held.contains(&*fold_case(path.as_os_str())))
    }

    fn mark(&mut self, standing: &GrantGeneration) -> Option<Arc<GrantVersionFile>> {
        // A file that an earlier server made has no name any more: then there is a new one of the same name.
        if let Some(known) = self.marks.get(&standing.file).filter(|known| known.read().is_some()) {
            return Some(known.clone());
        }
        let mark = Arc::new(GrantVersionFile(File::open(&standing.file).ok()?));
        self.marks.insert(standing.file.clone(), mark.clone());
        Some(mark)
    }
}

/// The server's mark for an owner.
#[derive(Debug)]
struct GrantVersionFile(File);

impl GrantVersionFile {
    /// What it says now; nothing if it counts no longer.
    fn read(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        (fstat(&self.0).ok()?.st_nlink > 0).then_some(u64::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_file_is_denied_for_a_while() {
        let mut granted = GrantCache::default();
        let (own, path) = (CallOwner::Root, Path::new("/a"));
        granted.add_stale_content(own, path.into());
        assert!(
            granted.has_stale_content(own, path, 0) && !granted.has_stale_content(own, Path::new("/b"), 0)
        );
        assert!(granted.has_stale_content(own, path, OBJECTION_MICROSECONDS * 3), "nobody was told yet");
        granted.mark_stale_content_reported(own, path, OBJECTION_MICROSECONDS * 3);
        granted.mark_stale_content_reported(own, path, OBJECTION_MICROSECONDS * 4 - 1);
        assert!(
            granted.has_stale_content(own, path, OBJECTION_MICROSECONDS * 4 - 1),
            "another way, with the same in mind"
        );
        assert!(!granted.has_stale_content(own, path, OBJECTION_MICROSECONDS * 4));
    }

    // H2
    #[test]
    fn files_are_unheld_until_the_mark_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mark");
        let write = |number: u64| std::fs::write(&file, number.to_le_bytes()).unwrap();
        write(7);
        let mut granted = GrantCache::default();
        let (root, path) = (Path::new("/r"), Path::new("/r/x"));
        assert!(!granted.is_known_unheld(root, path), "not known yet");
        let standing = GrantGeneration { file: file.to_str().unwrap().to_owned(), mark: 7 };
        granted.add_held(root.into(), &["/r/Held".into()], &standing);
        assert!(granted.is_known_unheld(root, path));
        for held in ["/r/Held", "/r/held"] {
            assert!(!granted.is_known_unheld(root, Path::new(held)), "{held}");
        }
        assert!(!granted.is_known_unheld(Path::new("/other"), Path::new("/other/x")));
        write(8);
        assert!(!granted.is_known_unheld(root, path), "a session got a file");
    }

    #[test]
    fn grant_is_valid_until_its_mark_changes_or_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mark");
        let write = |number: u64| std::fs::write(&file, number.to_le_bytes()).unwrap();
        let standing = |mark| GrantGeneration { file: file.to_str().unwrap().to_owned(), mark };
        write(7);
        let mut granted = GrantCache::default();
        let (own, path) = (CallOwner::Root, Path::new("/a"));
        granted.add(own, path.into(), &standing(7));
        assert!(granted.holds(own, path));
        assert!(!granted.holds(own, Path::new("/b")));
        assert!(!granted.holds(CallOwner::Agent { pid: 1, started: 2 }, path), "it is somebody else's");
        write(8);
        assert!(!granted.holds(own, path));
        granted.add(own, path.into(), &standing(8));
        assert!(granted.holds(own, path));
        std::fs::remove_file(&file).unwrap();
        assert!(!granted.holds(own, path));
        write(9);
        granted.add(own, path.into(), &standing(9));
        assert!(granted.holds(own, path), "the next server's mark has the same name");
    }
}
