//! Where git looks for hooks.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::GitError;
use super::run::Question;

/// Where git looks for the hooks of a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HooksFolder {
    /// The folder, absolute. It may not exist yet.
    pub path: PathBuf,
    /// The top of the working tree that was asked about.
    pub root: PathBuf,
    /// Somebody set `core.hooksPath`: husky, lefthook, or the person for all repositories at once.
    pub is_configured: bool,
    /// It lies among the files of the working tree, so that what is put there can show up in `git status`.
    pub is_in_tree: bool,
}

/// Where git looks for hooks: `core.hooksPath` if it is set, else the folder that all linked worktrees share.
pub fn hooks_folder(root: &Path) -> Result<HooksFolder, GitError> {
    let ask = |question: &[&str]| -> Result<PathBuf, GitError> {
        let mut said = Question::new(root, "rev-parse", question).answer()?;
        // One line end, and no more: a name may end with one of its own.
        if said.last() == Some(&b'\n') {
            said.pop();
        }
        Ok(PathBuf::from(OsString::from_vec(said)))
    };
    let top = ask(&["--show-toplevel"])?;
    let common = ask(&["--path-format=absolute", "--git-common-dir"])?;
    let asked = Question::new(&top, "rev-parse", ["--git-path", "hooks"]).answer()?;
    let named = asked.strip_suffix(b"\n").unwrap_or(&asked).to_vec();
    // Relative to the top of the tree, where git runs its hooks.
    let path = clean(&top.join(PathBuf::from(OsString::from_vec(named))));
    let is_configured = path != clean(&common.join("hooks"));
    let is_in_tree = path.starts_with(&top) && !path.starts_with(&common);
    Ok(HooksFolder { path, root: top, is_configured, is_in_tree })
}

/// Without `.` and doubled slashes.
fn clean(path: &Path) -> PathBuf {
    path.components().collect()
}
