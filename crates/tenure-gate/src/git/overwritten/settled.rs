//! What a repository notes about itself, beside its commits.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::asking::Asked;
use super::lists::lines;

impl Asked {
    /// Where two commits parted. More than one, if they met in between.
    pub fn bases(&self, one: &str, other: &str) -> Result<Vec<String>, GitError> {
        let said = self.question("merge-base", ["--all", one, other]).answer_if_any()?;
        Ok(lines(&said.unwrap_or_default()))
    }

    /// Branches of others that git may mean by a name that is not there.
    pub fn guessed(&self, word: &OsStr) -> Result<Vec<String>, GitError> {
        let mut pattern = OsString::from("--remotes=*/");
        pattern.push(word);
        match self.question("rev-parse", [pattern]).answer() {
            Err(GitError::Failed { .. }) => Ok(Vec::new()),
            said => Ok(lines(&said?)),
        }
    }

    /// Options that are set for every merge into the branch that is checked out.
    pub fn merge_options(&self) -> Result<Vec<OsString>, GitError> {
        let said = self.question("rev-parse", ["--symbolic-full-name", "HEAD"]).answer_if_any();
        let name = match said {
            // There is no commit yet.
            Err(GitError::Failed { .. }) => return Ok(Vec::new()),
            said => String::from_utf8_lossy(&said?.unwrap_or_default()).trim_end_matches('\n').to_owned(),
        };
        let Some(branch) = name.strip_prefix("refs/heads/") else { return Ok(Vec::new()) };
        let options = self.setting(&format!("branch.{branch}.mergeoptions"))?.unwrap_or_default();
        Ok(options.split_whitespace().map(OsString::from).collect())
    }

    /// The commits that the last fetch means to be merged.
    pub fn fetched(&self) -> Result<Vec<String>, GitError> {
        let text = self.noted("FETCH_HEAD")?;
        let lines = text.lines().filter(|line| !line.contains("\tnot-for-merge\t"));
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

    /// What git has noted in a file of its own; empty if there is none.
    pub fn noted(&self, name: &str) -> Result<String, GitError> {
        let content = std::fs::read(self.git_folder("--absolute-git-dir")?.join(name)).unwrap_or_default();
        Ok(String::from_utf8_lossy(&content).into_owned())
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
