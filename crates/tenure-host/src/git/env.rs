//! Git settings in the environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::GitError;
use super::query::GitQuery;

/// Which repository is meant, and what it is made of.
const LOCATION_VARIABLES: [&str; 13] = [
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
const CONFIG_LOCATION_VARIABLES: [&str; 5] =
    ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];
/// Settings that stand in the environment itself, and where attributes are.
const INLINE_CONFIG_VARIABLES: [&str; 4] =
    ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_ATTR_SOURCE", "GIT_ATTR_NOSYSTEM"];
const NUMBERED_CONFIG_PREFIXES: [&str; 2] = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];
const PATHSPEC_VARIABLES: [&str; 4] =
    ["GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"];

/// Whether a variable of this name decides what a command of git does to the working tree. Of an environment that is handed to
/// [`impact`](super::impact), these count and no others.
pub fn is_git_variable(name: &OsStr) -> bool {
    let numbered =
        || NUMBERED_CONFIG_PREFIXES.iter().any(|begin| name.as_bytes().starts_with(begin.as_bytes()));
    is_location_variable(name)
        || is_config_location(name)
        || is_pathspec_variable(name)
        || is(name, &INLINE_CONFIG_VARIABLES)
        || numbered()
}

/// Whether it says which repository is meant.
pub(super) fn is_location_variable(name: &OsStr) -> bool {
    is(name, &LOCATION_VARIABLES)
}

/// Whether it says where a person keeps settings.
pub(super) fn is_config_location(name: &OsStr) -> bool {
    is(name, &CONFIG_LOCATION_VARIABLES)
}

/// Whether it says how paths are read.
pub(super) fn is_pathspec_variable(name: &OsStr) -> bool {
    is(name, &PATHSPEC_VARIABLES)
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
    let ask = |arguments: &[&str]| -> Result<PathBuf, GitError> {
        let mut output = GitQuery::new(root, "rev-parse", arguments).output()?;
        // One line end, and no more: a name may end with one of its own.
        if output.last() == Some(&b'\n') {
            output.pop();
        }
        Ok(PathBuf::from(OsString::from_vec(output)))
    };
    let top = ask(&["--show-toplevel"])?;
    let common = ask(&["--path-format=absolute", "--git-common-dir"])?;
    let output = GitQuery::new(&top, "rev-parse", ["--git-path", "hooks"]).output()?;
    let named = output.strip_suffix(b"\n").unwrap_or(&output).to_vec();
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
        let relevant = ["GIT_DIR", "HOME", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_12"];
        assert!(relevant.iter().chain(&PATHSPEC_VARIABLES).all(|name| is_git_variable(OsStr::new(name))));
        let irrelevant = ["GIT_EDITOR", "GIT_TRACE", "PATH", "GIT_SSH_COMMAND", "GIT_CONFIG", "HOMES", ""];
        assert!(!irrelevant.iter().any(|name| is_git_variable(OsStr::new(name))));
    }
}
