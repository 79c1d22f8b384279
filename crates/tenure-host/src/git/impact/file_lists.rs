//! Lists of files: what is dirty, tracked, untracked, different.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::super::GitError;
use super::super::changed_paths::{split_nul_paths, status_paths};
use super::repository_context::RepositoryContext;

/// How paths are compared: every name for itself, from the top of the tree. These are asked by the plain commands below `git diff`,
/// which no setting of a person changes.
pub(super) const COMPARE: [&str; 5] =
    ["--name-only", "-z", "--no-renames", "--no-relative", "--ignore-submodules=dirty"];

/// What is neither in the index nor ignored.
const UNTRACKED: [&str; 4] = ["--others", "--exclude-standard", "-z", "--full-name"];

/// Paths, relative to the top of the working tree.
pub(super) type Paths = BTreeSet<PathBuf>;

impl RepositoryContext {
    /// What is not as in HEAD, also where git was told not to look.
    pub fn dirty_paths(&self, untracked: bool, paths: &[OsString]) -> Result<Paths, GitError> {
        let options = [
            "--porcelain=v2",
            "-z",
            if untracked { "--untracked-files=all" } else { "--untracked-files=no" },
            "--ignored=no",
            "--no-renames",
            "--ignore-submodules=dirty",
        ];
        let mut dirty: Paths =
            status_paths(&self.query_paths("status", &options, paths, None)?).into_iter().collect();
        dirty.extend(self.hidden_from_status(paths)?);
        Ok(dirty)
    }

    /// What git was told not to look at. Most verbs put the file back all the same.
    pub fn hidden_from_status(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        let listed = self.query_paths("ls-files", &["-v", "-z", "--full-name"], paths, Some(":/"))?;
        let is_there = |name: &OsStr| self.root.join(name).symlink_metadata().is_ok();
        let hidden = listed.split(|byte| *byte == 0).filter_map(|line| match line {
            // `assume-unchanged` has a small letter.
            [tag, b' ', name @ ..] if tag.is_ascii_lowercase() => Some(OsStr::from_bytes(name)),
            // `skip-worktree`: in a sparse tree, that is most of the files, and they are not there.
            [b'S', b' ', name @ ..] => Some(OsStr::from_bytes(name)).filter(|name| is_there(name)),
            _ => None,
        });
        Ok(hidden.map(PathBuf::from).collect())
    }

    /// What git writes anew from its index: what differs from that, was only touched, or is not looked at. (A file that is as in the
    /// index and has another time is replaced by git all the same: refused there, it would stop in the middle.)
    pub fn rewritten_paths(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        let touched = self.query_paths("diff-files", &COMPARE, paths, None)?;
        Ok(split_nul_paths(&touched).chain(self.hidden_from_status(paths)?).collect())
    }

    /// The same; these are names and no patterns.
    pub fn rewritten_files(&self, files: &[OsString]) -> Result<Paths, GitError> {
        let literal = ["--literal-pathspecs".into()];
        let options = COMPARE.into_iter().map(OsString::from).chain(["--".into()]);
        let mut query = self.query("diff-files", options.chain(files.iter().cloned()));
        query.pathspecs = &literal;
        Ok(split_nul_paths(&query.output()?).chain(self.hidden_from_status(&[])?).collect())
    }

    pub fn tracked_paths(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        Ok(split_nul_paths(&self.query_paths("ls-files", &["-z", "--full-name"], paths, Some(":/"))?)
            .collect())
    }

    /// What is neither in the index nor ignored: below the folder where git runs, if no path is named.
    pub fn untracked_paths(&self, more: &[OsString], paths: &[OsString]) -> Result<Paths, GitError> {
        let options: Vec<_> = UNTRACKED.into_iter().map(OsString::from).chain(more.iter().cloned()).collect();
        Ok(clean_names(&self.query_paths("ls-files", &options, paths, None)?))
    }

    /// The same by what this process takes for ignored, whatever the agent says is.
    pub fn untracked_paths_by_own_settings(
        &self,
        more: &[OsString],
        paths: &[OsString],
    ) -> Result<Paths, GitError> {
        let options: Vec<_> = UNTRACKED.into_iter().map(OsString::from).chain(more.iter().cloned()).collect();
        Ok(clean_names(&self.query_paths_with_own_settings("ls-files", &options, paths, None)?))
    }

    /// What is ignored, with folders as one; below `otherwise` if no path is named.
    pub fn ignored_paths(&self, paths: &[OsString], otherwise: Option<&str>) -> Result<Paths, GitError> {
        let options = ["--others", "--ignored", "--exclude-standard", "--directory", "-z", "--full-name"];
        let mut ignored = clean_names(&self.query_paths("ls-files", &options, paths, otherwise)?);
        ignored.extend(clean_names(
            &self.query_paths_with_own_settings("ls-files", &options, paths, otherwise)?,
        ));
        Ok(ignored)
    }

    /// What can be merged anew, since git remembers how it was.
    pub fn resolve_undo_paths(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        let listed =
            self.query_paths("ls-files", &["--resolve-undo", "-z", "--full-name"], paths, Some(":/"))?;
        let names =
            listed.split(|byte| *byte == 0).filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }

    /// Where the index differs from this tree, and what is unmerged. Without a tree, all of it.
    pub fn staged_paths(&self, tree: Option<&str>, paths: &[OsString]) -> Result<Paths, GitError> {
        let Some(tree) = tree else { return self.tracked_paths(paths) };
        let options: Vec<_> =
            COMPARE.into_iter().chain(["--cached", "--ita-visible-in-index", tree]).collect();
        Ok(split_nul_paths(&self.query_paths("diff-index", &options, paths, None)?).collect())
    }

    /// Where two trees differ. Without one, all that the other has.
    pub fn diff_trees(&self, one: Option<&str>, other: Option<&str>) -> Result<Paths, GitError> {
        let listed = match (one, other) {
            (None, None) => return Ok(Paths::new()),
            (Some(one), Some(other)) => {
                self.query("diff-tree", COMPARE.into_iter().chain(["-r", one, other, "--"])).output()?
            }
            (Some(tree), None) | (None, Some(tree)) => {
                self.query("ls-tree", ["-r", "-z", "--name-only", "--full-tree", tree]).output()?
            }
        };
        Ok(split_nul_paths(&listed).collect())
    }

    /// All files below these folders that anybody could miss.
    pub fn files_below(&self, folders: &[OsString]) -> Result<Paths, GitError> {
        let options = ["--cached", "--others", "--exclude-standard", "-z", "--full-name", "--"];
        let folders = folders.iter().map(|folder| {
            let mut pattern = OsString::from(":(top,literal)");
            pattern.push(folder);
            pattern
        });
        let query = self.query("ls-files", options.into_iter().map(OsString::from).chain(folders));
        Ok(clean_names(&query.output()?))
    }
}

pub(super) fn lines(output: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(output).lines().map(str::to_owned).collect()
}

/// A repository inside this one is one entry, with a slash at its end.
fn clean_names(listed: &[u8]) -> Paths {
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name)))).collect()
}
