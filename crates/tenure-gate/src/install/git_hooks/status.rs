//! Which hooks of git are in place, where git looks for them.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::script::{GitHookKind, is_own_script};
use super::{folder, plan_install, read_if_any};
use crate::git::HooksFolder;
use crate::install::hook_command::shell_unquote;
use crate::install::{InstallContext, InstallError};

/// Which hooks of git are in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHookStatus {
    pub folder: HooksFolder,
    /// Those of them that are ours.
    pub installed: Vec<GitHook>,
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
pub fn git_hook_status(place: &InstallContext) -> Result<GitHookStatus, InstallError> {
    let folder = folder(place)?;
    let mut found = GitHookStatus { folder, installed: Vec::new(), missing: Vec::new(), is_complete: false };
    for hook in GitHookKind::ALL {
        let path = found.folder.path.join(hook.name());
        match read_if_any(&path)?.filter(|content| is_own_script(content)) {
            Some(content) => found.installed.push(GitHook {
                program: program(&content),
                is_executable: access(&path, Access::EXEC_OK).is_ok(),
                path,
            }),
            None => found.missing.push(hook.name()),
        }
    }
    let program = found.installed.iter().find_map(|hook| hook.program.clone());
    if let Some(program) = program {
        let place = InstallContext { program, ..place.clone() };
        found.is_complete = plan_install(&place)?.changes.is_empty();
    }
    Ok(found)
}

/// What the script calls `program`.
fn program(content: &[u8]) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(content);
    let word = text.lines().find_map(|line| line.strip_prefix("program="))?;
    shell_unquote(word).filter(|program: &PathBuf| program != Path::new(""))
}
