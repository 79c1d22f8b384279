//! Settings that git was told by its environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::GitError;
use super::run::Question;

/// Which repository is meant, and what it is made of.
const PLACE: [&str; 13] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
];
const SETTINGS: [&str; 5] =
    ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];
/// Settings that stand in the environment itself, and where attributes are.
const SET: [&str; 4] = ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_ATTR_SOURCE", "GIT_ATTR_NOSYSTEM"];
const NUMBERED: [&str; 2] = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];
const PATHSPECS: [&str; 4] =
    ["GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"];

/// Whether a variable of this name decides what a command of git does to the working tree. Of an environment that is handed to
/// [`overwritten`](super::overwritten), these count and no others.
pub fn tells_git(name: &OsStr) -> bool {
    let numbered = || NUMBERED.iter().any(|begin| name.as_bytes().starts_with(begin.as_bytes()));
    is_place(name) || is_settings(name) || is_pathspecs(name) || is(name, &SET) || numbered()
}

/// Whether it says which repository is meant.
pub(super) fn is_place(name: &OsStr) -> bool {
    is(name, &PLACE)
}

/// Whether it says where a person keeps settings.
pub(super) fn is_settings(name: &OsStr) -> bool {
    is(name, &SETTINGS)
}

/// Whether it says how paths are read.
pub(super) fn is_pathspecs(name: &OsStr) -> bool {
    is(name, &PATHSPECS)
}

fn is(name: &OsStr, known: &[&str]) -> bool {
    known.iter().any(|known| name == *known)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_that_affect_the_working_tree_are_git_variables() {
        let told = ["GIT_DIR", "HOME", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_12"];
        assert!(told.iter().chain(&PATHSPECS).all(|name| tells_git(OsStr::new(name))));
        let others = ["GIT_EDITOR", "GIT_TRACE", "PATH", "GIT_SSH_COMMAND", "GIT_CONFIG", "HOMES", ""];
        assert!(!others.iter().any(|name| tells_git(OsStr::new(name))));
    }
}
