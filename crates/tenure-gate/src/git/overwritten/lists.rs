//! Lists of files: what is dirty, tracked, untracked, different.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::super::GitError;
use super::super::changes::{names, status_paths};
use super::asking::Asked;

/// How paths are compared: every name for itself, from the top of the tree. These are asked by the plain commands below `git diff`,
/// which no setting of a person changes.
pub(super) const COMPARE: [&str; 5] =
    ["--name-only", "-z", "--no-renames", "--no-relative", "--ignore-submodules=dirty"];

/// What is neither in the index nor ignored.
const UNTRACKED: [&str; 4] = ["--others", "--exclude-standard", "-z", "--full-name"];

/// Paths, relative to the top of the working tree.
pub(super) type Paths = BTreeSet<PathBuf>;

impl Asked {
    /// What is not as in HEAD, also where git was told not to look.
    pub fn dirty(&self, untracked: bool, paths: &[OsString]) -> Result<Paths, GitError> {
        let options = [
            "--porcelain=v2",
            "-z",
            if untracked { "--untracked-files=all" } else { "--untracked-files=no" },
            "--ignored=no",
            "--no-renames",
            "--ignore-submodules=dirty",
        ];
        let mut dirty: Paths =
            status_paths(&self.about("status", &options, paths, None)?).into_iter().collect();
        dirty.extend(self.hidden(paths)?);
        Ok(dirty)
    }

    /// What git was told not to look at. Most verbs put the file back all the same.
    pub fn hidden(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        let listed = self.about("ls-files", &["-v", "-z", "--full-name"], paths, Some(":/"))?;
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
    pub fn touched(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        let touched = self.about("diff-files", &COMPARE, paths, None)?;
        Ok(names(&touched).chain(self.hidden(paths)?).collect())
    }

    /// The same; these are names and no patterns.
    pub fn touched_files(&self, files: &[OsString]) -> Result<Paths, GitError> {
        let literal = ["--literal-pathspecs".into()];
        let options = COMPARE.into_iter().map(OsString::from).chain(["--".into()]);
        let mut question = self.question("diff-files", options.chain(files.iter().cloned()));
        question.pathspecs = &literal;
        Ok(names(&question.answer()?).chain(self.hidden(&[])?).collect())
    }

    pub fn tracked(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        Ok(names(&self.about("ls-files", &["-z", "--full-name"], paths, Some(":/"))?).collect())
    }

    /// What is neither in the index nor ignored: below the folder where git runs, if no path is named.
    pub fn untracked(&self, more: &[OsString], paths: &[OsString]) -> Result<Paths, GitError> {
        let options: Vec<_> = UNTRACKED.into_iter().map(OsString::from).chain(more.iter().cloned()).collect();
        Ok(clean_names(&self.about("ls-files", &options, paths, None)?))
    }

    /// The same by what this process takes for ignored, whatever the agent says is.
    pub fn untracked_for_us(&self, more: &[OsString], paths: &[OsString]) -> Result<Paths, GitError> {
        let options: Vec<_> = UNTRACKED.into_iter().map(OsString::from).chain(more.iter().cloned()).collect();
        Ok(clean_names(&self.about_for_us("ls-files", &options, paths, None)?))
    }

    /// What is ignored, with folders as one; below `otherwise` if no path is named.
    pub fn ignored(&self, paths: &[OsString], otherwise: Option<&str>) -> Result<Paths, GitError> {
        let options = ["--others", "--ignored", "--exclude-standard", "--directory", "-z", "--full-name"];
        let mut ignored = clean_names(&self.about("ls-files", &options, paths, otherwise)?);
        ignored.extend(clean_names(&self.about_for_us("ls-files", &options, paths, otherwise)?));
        Ok(ignored)
    }

    /// What can be merged anew, since git remembers how it was.
    pub fn resolved(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        let listed = self.about("ls-files", &["--resolve-undo", "-z", "--full-name"], paths, Some(":/"))?;
        let names =
            listed.split(|byte| *byte == 0).filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }

    /// Where the index differs from this tree, and what is unmerged. Without a tree, all of it.
    pub fn staged(&self, tree: Option<&str>, paths: &[OsString]) -> Result<Paths, GitError> {
        let Some(tree) = tree else { return self.tracked(paths) };
        let options: Vec<_> =
            COMPARE.into_iter().chain(["--cached", "--ita-visible-in-index", tree]).collect();
        Ok(names(&self.about("diff-index", &options, paths, None)?).collect())
    }

    /// Where two trees differ. Without one, all that the other has.
    pub fn between(&self, one: Option<&str>, other: Option<&str>) -> Result<Paths, GitError> {
        let listed = match (one, other) {
            (None, None) => return Ok(Paths::new()),
            (Some(one), Some(other)) => {
                self.question("diff-tree", COMPARE.into_iter().chain(["-r", one, other, "--"])).answer()?
            }
            (Some(tree), None) | (None, Some(tree)) => {
                self.question("ls-tree", ["-r", "-z", "--name-only", "--full-tree", tree]).answer()?
            }
        };
        Ok(names(&listed).collect())
    }

    /// All files below these folders that anybody could miss.
    pub fn below(&self, folders: &[OsString]) -> Result<Paths, GitError> {
        let options = ["--cached", "--others", "--exclude-standard", "-z", "--full-name", "--"];
        let folders = folders.iter().map(|folder| {
            let mut pattern = OsString::from(":(top,literal)");
            pattern.push(folder);
            pattern
        });
        let question = self.question("ls-files", options.into_iter().map(OsString::from).chain(folders));
        Ok(clean_names(&question.answer()?))
    }
}

pub(super) fn lines(said: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(said).lines().map(str::to_owned).collect()
}

/// A repository inside this one is one entry, with a slash at its end.
fn clean_names(listed: &[u8]) -> Paths {
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name)))).collect()
}
