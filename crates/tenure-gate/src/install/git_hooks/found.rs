//! Which hooks of git are in place, where git looks for them.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::script::{Hook, is_ours};
use super::{folder, plan_install, read_if_any};
use crate::git::HooksFolder;
use crate::install::command::unquoted;
use crate::install::{InstallError, Place};

/// Which hooks of git are in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHooks {
    pub folder: HooksFolder,
    /// Those of them that are ours.
    pub ours: Vec<GitHook>,
    /// The names of those that should be.
    pub missing: Vec<&'static str>,
    /// Whether each is as installing with the same program would write it.
    pub is_complete: bool,
}

/// A hook of git that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHook {
    pub path: PathBuf,
    pub program: Option<PathBuf>,
    /// Whether git may run it. One that it may not is passed over without a word, or with a hint.
    pub is_executable: bool,
}

/// Which hooks of git are in place for the working tree at `place`. Reads, and changes nothing.
pub fn git_hooks(place: &Place) -> Result<GitHooks, InstallError> {
    let folder = folder(place)?;
    let mut found = GitHooks { folder, ours: Vec::new(), missing: Vec::new(), is_complete: false };
    for hook in Hook::ALL {
        let path = found.folder.path.join(hook.name());
        match read_if_any(&path)?.filter(|content| is_ours(content)) {
            Some(content) => found.ours.push(GitHook {
                program: program(&content),
                is_executable: access(&path, Access::EXEC_OK).is_ok(),
                path,
            }),
            None => found.missing.push(hook.name()),
        }
    }
    let program = found.ours.iter().find_map(|hook| hook.program.clone());
    if let Some(program) = program {
        let place = Place { program, ..place.clone() };
        found.is_complete = plan_install(&place)?.changes.is_empty();
    }
    Ok(found)
}

/// What the script calls `program`.
fn program(content: &[u8]) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(content);
    let word = text.lines().find_map(|line| line.strip_prefix("program="))?;
    unquoted(word).filter(|program: &PathBuf| program != Path::new(""))
}
