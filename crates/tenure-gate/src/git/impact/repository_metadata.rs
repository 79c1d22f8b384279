//! What a repository notes about itself, beside its commits.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::file_lists::lines;
use super::repository_context::RepositoryContext;

impl RepositoryContext {
    /// Where two commits parted. More than one, if they met in between.
    pub fn merge_bases(&self, one: &str, other: &str) -> Result<Vec<String>, GitError> {
        let output = self.query("merge-base", ["--all", one, other]).optional_output()?;
        Ok(lines(&output.unwrap_or_default()))
    }

    /// Branches of others that git may mean by a name that is not there.
    pub fn guessed_remote_branches(&self, word: &OsStr) -> Result<Vec<String>, GitError> {
        let mut pattern = OsString::from("--remotes=*/");
        pattern.push(word);
        match self.query("rev-parse", [pattern]).output() {
            Err(GitError::Failed { .. }) => Ok(Vec::new()),
            output => Ok(lines(&output?)),
        }
    }

    /// Options that are set for every merge into the branch that is checked out.
    pub fn merge_options(&self) -> Result<Vec<OsString>, GitError> {
        let output = self.query("rev-parse", ["--symbolic-full-name", "HEAD"]).optional_output();
        let name = match output {
            // There is no commit yet.
            Err(GitError::Failed { .. }) => return Ok(Vec::new()),
            output => String::from_utf8_lossy(&output?.unwrap_or_default()).trim_end_matches('\n').to_owned(),
        };
        let Some(branch) = name.strip_prefix("refs/heads/") else { return Ok(Vec::new()) };
        let options = self.config_value(&format!("branch.{branch}.mergeoptions"))?.unwrap_or_default();
        Ok(options.split_whitespace().map(OsString::from).collect())
    }

    /// The commits that the last fetch means to be merged.
    pub fn fetch_heads(&self) -> Result<Vec<String>, GitError> {
        let text = self.read_git_file("FETCH_HEAD")?;
        let lines = text.lines().filter(|line| !line.contains("\tnot-for-merge\t"));
        let ids = lines.filter_map(|line| line.split('\t').next().map(OsString::from));
        ids.filter_map(|id| self.resolve_commit(&id).transpose()).collect()
    }

    /// The folder of another working tree of this repository, by its path or the end of its path.
    pub fn linked_worktree(&self, folder: &Path, name: &OsStr) -> Result<Option<PathBuf>, GitError> {
        let named = folder.join(name);
        if named.is_dir() {
            return Ok(Some(named));
        }
        let noted = self.rev_parse_path("--git-common-dir")?.join("worktrees");
        let entries = std::fs::read_dir(folder.join(noted)).into_iter().flatten().flatten();
        let trees = entries.filter_map(|entry| {
            let content = std::fs::read(entry.path().join("gitdir")).ok()?;
            let path = Path::new(OsStr::from_bytes(content.strip_suffix(b"\n").unwrap_or(&content)));
            Some(path.parent()?.to_path_buf())
        });
        Ok(trees.into_iter().find(|tree| tree.ends_with(name) && tree.is_dir()))
    }

    /// What git has noted in a file of its own; empty if there is none.
    pub fn read_git_file(&self, name: &str) -> Result<String, GitError> {
        let content =
            std::fs::read(self.rev_parse_path("--absolute-git-dir")?.join(name)).unwrap_or_default();
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    /// A folder that git keeps, relative to where git runs if it is not absolute.
    pub fn rev_parse_path(&self, which: &str) -> Result<PathBuf, GitError> {
        let mut output = self.query("rev-parse", [which]).output()?;
        // One line end, and no more: a name may end with one of its own.
        if output.last() == Some(&b'\n') {
            output.pop();
        }
        Ok(PathBuf::from(OsString::from_vec(output)))
    }
}
