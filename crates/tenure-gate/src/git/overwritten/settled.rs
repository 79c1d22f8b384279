//! What a repository notes about itself, beside its commits.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::asking::{Asked, lines};

impl Asked {
    /// Whether a setting says yes. Where it is said more than once, one yes is enough.
    pub fn is_set(&self, name: &str) -> Result<bool, GitError> {
        let said = self.question("var", ["-l"]).answer()?;
        Ok(lines(&said).iter().any(|line| {
            let (known, value) = line.split_once('=').unwrap_or((line, "true"));
            let says_no = ["false", "no", "off", "0", ""].iter().any(|no| value.eq_ignore_ascii_case(no));
            known.eq_ignore_ascii_case(name) && !says_no
        }))
    }

    /// The commits that the last fetch means to be merged.
    pub fn fetched(&self) -> Result<Vec<String>, GitError> {
        let text =
            std::fs::read(self.git_folder("--absolute-git-dir")?.join("FETCH_HEAD")).unwrap_or_default();
        let lines = lines(&text).into_iter().filter(|line| !line.contains("\tnot-for-merge\t"));
        let ids = lines.filter_map(|line| line.split('\t').next().map(OsString::from));
        ids.filter_map(|id| self.commit(&id).transpose()).collect()
    }

    /// The folder of another working tree of this repository, by its path or the end of its path.
    pub fn other_tree(&self, folder: &Path, name: &OsStr) -> Result<Option<PathBuf>, GitError> {
        let named = folder.join(name);
        if named.is_dir() {
            return Ok(Some(named));
        }
        let noted = self.git_folder("--git-common-dir")?.join("worktrees");
        let entries = std::fs::read_dir(folder.join(noted)).into_iter().flatten().flatten();
        let trees = entries.filter_map(|entry| {
            let note = std::fs::read(entry.path().join("gitdir")).ok()?;
            let path = Path::new(OsStr::from_bytes(note.strip_suffix(b"\n").unwrap_or(&note)));
            Some(path.parent()?.to_path_buf())
        });
        Ok(trees.into_iter().find(|tree| tree.ends_with(name) && tree.is_dir()))
    }

    /// A folder that git keeps, relative to where git runs if it is not absolute.
    pub fn git_folder(&self, which: &str) -> Result<PathBuf, GitError> {
        let mut said = self.question("rev-parse", [which]).answer()?;
        // One line end, and no more: a name may end with one of its own.
        if said.last() == Some(&b'\n') {
            said.pop();
        }
        Ok(PathBuf::from(OsString::from_vec(said)))
    }
}
