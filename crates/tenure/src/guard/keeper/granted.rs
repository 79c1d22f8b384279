//! What was granted, as long as it can be relied on without asking again.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::fstat;
use tenure_api::Standing;
use tenure_gate::paths::fold;

use super::owners::Owner;

/// The most that is remembered; then all of it is asked for anew.
const MOST: usize = 100_000;
/// The same for working trees.
const MOST_TREES: usize = 100;
/// How long is objected to what may be out of date, in microseconds. Programs that fail try another way at once, with what they
/// know; whoever reads again takes longer. For ever would be too long: then nobody could go on.
const OBJECTS_FOR: u64 = 5_000_000;

/// Which files the owners below us may change.
#[derive(Debug, Default)]
pub struct Granted {
    files: HashMap<(Owner, PathBuf), (Arc<Mark>, u64)>,
    marks: HashMap<String, Arc<Mark>>,
    /// What somebody else changed before it was granted, after whoever has it now began: it may know only what was there
    /// before. Whatever takes something away from it is objected to, until a while after that was said first.
    objections: HashMap<(Owner, PathBuf), Option<u64>>,
    /// What sessions held in each working tree, and the mark under which they hold nothing more.
    held: HashMap<PathBuf, (Arc<Mark>, u64, HashSet<OsString>)>,
}

impl Granted {
    pub fn add(&mut self, owner: Owner, path: PathBuf, standing: &Standing) {
        let Some(mark) = self.mark(standing) else { return };
        if self.files.len() >= MOST {
            self.files.clear();
        }
        self.files.insert((owner, path), (mark, standing.mark));
    }

    /// Whether this was granted, and nothing has ended since.
    pub fn holds(&self, owner: Owner, path: &Path) -> bool {
        let found = self.files.get(&(owner, path.to_path_buf()));
        found.is_some_and(|(mark, number)| mark.read() == Some(*number))
    }

    /// Everything that was granted to this owner, but for what another one has got since; it is forgotten.
    pub fn take(&mut self, owner: Owner) -> Vec<PathBuf> {
        let taken: Vec<PathBuf> =
            self.files.extract_if(|(other, _), _| *other == owner).map(|((_, path), _)| path).collect();
        let stands = |(mark, number): &(Arc<Mark>, u64)| mark.read() == Some(*number);
        let is_anothers =
            |path: &PathBuf| self.files.iter().any(|((_, other), grant)| other == path && stands(grant));
        taken.into_iter().filter(|path| !is_anothers(path)).collect()
    }

    /// From now on changes that take something away are objected to.
    pub fn object(&mut self, owner: Owner, path: PathBuf) {
        if self.objections.len() < MOST {
            self.objections.insert((owner, path), None);
        }
    }

    /// Whether such a change is to be objected to now.
    pub fn is_objected(&self, owner: Owner, path: &Path, now: u64) -> bool {
        if self.objections.is_empty() {
            return false;
        }
        let found = self.objections.get(&(owner, path.to_path_buf()));
        found.is_some_and(|said| said.is_none_or(|said| now.saturating_sub(said) < OBJECTS_FOR))
    }

    pub fn objected(&mut self, owner: Owner, path: &Path, now: u64) {
        if let Some(said) = self.objections.get_mut(&(owner, path.to_path_buf())) {
            said.get_or_insert(now);
        }
    }

    /// Sessions hold these files in this tree, and no others while the mark stays.
    pub fn add_held(&mut self, root: PathBuf, held: &[PathBuf], standing: &Standing) {
        let Some(mark) = self.mark(standing) else { return };
        if self.held.len() >= MOST_TREES {
            self.held.clear();
        }
        let names = held.iter().map(|path| fold(path.as_os_str()).into_owned()).collect();
        self.held.insert(root, (mark, standing.mark, names));
    }

    /// Whether it is known that no session holds this file of this tree. Case is folded, as in a folder that does not tell it
    /// apart: the server decides then.
    pub fn is_unheld(&self, root: &Path, path: &Path) -> bool {
        let known = self.held.get(root).filter(|(mark, number, _)| mark.read() == Some(*number));
        known.is_some_and(|(_, _, held)| !held.contains(&*fold(path.as_os_str())))
    }

    fn mark(&mut self, standing: &Standing) -> Option<Arc<Mark>> {
        // A file that an earlier server made has no name any more: then there is a new one of the same name.
        if let Some(known) = self.marks.get(&standing.file).filter(|known| known.read().is_some()) {
            return Some(known.clone());
        }
        let mark = Arc::new(Mark(File::open(&standing.file).ok()?));
        self.marks.insert(standing.file.clone(), mark.clone());
        Some(mark)
    }
}

/// The server's mark for an owner.
#[derive(Debug)]
struct Mark(File);

impl Mark {
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
        let mut granted = Granted::default();
        let (own, path) = (Owner::First, Path::new("/a"));
        granted.object(own, path.into());
        assert!(granted.is_objected(own, path, 0) && !granted.is_objected(own, Path::new("/b"), 0));
        assert!(granted.is_objected(own, path, OBJECTS_FOR * 3), "nobody was told yet");
        granted.objected(own, path, OBJECTS_FOR * 3);
        granted.objected(own, path, OBJECTS_FOR * 4 - 1);
        assert!(granted.is_objected(own, path, OBJECTS_FOR * 4 - 1), "another way, with the same in mind");
        assert!(!granted.is_objected(own, path, OBJECTS_FOR * 4));
    }

    // H2
    #[test]
    fn files_are_unheld_until_the_mark_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mark");
        let write = |number: u64| std::fs::write(&file, number.to_le_bytes()).unwrap();
        write(7);
        let mut granted = Granted::default();
        let (root, path) = (Path::new("/r"), Path::new("/r/x"));
        assert!(!granted.is_unheld(root, path), "not known yet");
        let standing = Standing { file: file.to_str().unwrap().to_owned(), mark: 7 };
        granted.add_held(root.into(), &["/r/Held".into()], &standing);
        assert!(granted.is_unheld(root, path));
        for held in ["/r/Held", "/r/held"] {
            assert!(!granted.is_unheld(root, Path::new(held)), "{held}");
        }
        assert!(!granted.is_unheld(Path::new("/other"), Path::new("/other/x")));
        write(8);
        assert!(!granted.is_unheld(root, path), "a session got a file");
    }

    #[test]
    fn grant_is_valid_until_its_mark_changes_or_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mark");
        let write = |number: u64| std::fs::write(&file, number.to_le_bytes()).unwrap();
        let standing = |mark| Standing { file: file.to_str().unwrap().to_owned(), mark };
        write(7);
        let mut granted = Granted::default();
        let (own, path) = (Owner::First, Path::new("/a"));
        granted.add(own, path.into(), &standing(7));
        assert!(granted.holds(own, path));
        assert!(!granted.holds(own, Path::new("/b")));
        assert!(!granted.holds(Owner::Agent { pid: 1, started: 2 }, path), "it is somebody else's");
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
