//! What git ignores.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::GitError;
use super::changes::{is_below, names};
use super::run::Question;

/// Which of these (relative to `root`, the top of a working tree; files or folders, existing or not) git ignores.
///
/// A tracked file is never ignored, nor is a folder with a tracked file below. What git cannot be asked about (inside a submodule,
/// beyond a symbolic link, outside) is not ignored: it belongs to somebody else, or to nobody who said so.
pub fn ignored(root: &Path, paths: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
    let asked: Vec<_> = paths.iter().filter(|path| is_below(path)).map(PathBuf::as_path).collect();
    let mut found = HashSet::new();
    ask(root, &asked, &mut found)?;
    Ok(paths.iter().filter(|path| found.contains(*path)).cloned().collect())
}

fn ask(root: &Path, paths: &[&Path], found: &mut HashSet<PathBuf>) -> Result<(), GitError> {
    if paths.is_empty() {
        return Ok(());
    }
    let mut question = Question::new(root, "check-ignore", ["-z", "--stdin"]);
    // This one subcommand does not take names as they are. With a dot before it, no name is magic; one with a `*` may
    // still be taken for a tracked one, and then is not ignored.
    question.pathspecs = &[];
    let input = paths.iter().flat_map(|path| [b"./", path.as_os_str().as_bytes(), b"\0"].concat());
    question.input = Some(input.collect());
    match question.answer_if_any() {
        Ok(listed) => {
            let listed = listed.unwrap_or_default();
            found.extend(names(&listed).filter_map(|path| Some(path.strip_prefix(".").ok()?.to_owned())));
        }
        // One of them ends the whole question. Halves find it quickly.
        Err(GitError::Failed { said, .. }) if cannot_be_asked(&said) => {
            if let (one, other @ [_, ..]) = paths.split_at(paths.len() / 2)
                && !one.is_empty()
            {
                ask(root, one, found)?;
                ask(root, other, found)?;
            }
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn cannot_be_asked(said: &str) -> bool {
    said.contains("is in submodule") || said.contains("beyond a symbolic link")
}
