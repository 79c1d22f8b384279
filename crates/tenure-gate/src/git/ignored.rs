//! Files that git ignores, and subcommands that only read.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::GitError;
use super::changed_paths::{is_below_root, split_nul_paths};
use super::query::GitQuery;

/// Which of these (relative to `root`, the top of a working tree; files or folders, existing or not) git ignores.
///
/// A tracked file is never ignored, nor is a folder with a tracked file below. What git cannot be asked about (inside a submodule,
/// beyond a symbolic link, outside) is not ignored: it belongs to somebody else, or to nobody who said so.
pub fn ignored_paths(root: &Path, paths: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
    let candidates: Vec<_> = paths.iter().filter(|path| is_below_root(path)).map(PathBuf::as_path).collect();
    let mut found = HashSet::new();
    collect_ignored(root, &candidates, &mut found)?;
    Ok(paths.iter().filter(|path| found.contains(*path)).cloned().collect())
}

fn collect_ignored(root: &Path, paths: &[&Path], found: &mut HashSet<PathBuf>) -> Result<(), GitError> {
    if paths.is_empty() {
        return Ok(());
    }
    let mut query = GitQuery::new(root, "check-ignore", ["-z", "--stdin"]);
    // This one subcommand does not take names as they are. With a dot before it, no name is magic; one with a `*` may
    // still be taken for a tracked one, and then is not ignored.
    query.pathspecs = &[];
    let input = paths.iter().flat_map(|path| [b"./", path.as_os_str().as_bytes(), b"\0"].concat());
    query.input = Some(input.collect());
    match query.optional_output() {
        Ok(listed) => {
            let listed = listed.unwrap_or_default();
            found.extend(
                split_nul_paths(&listed).filter_map(|path| Some(path.strip_prefix(".").ok()?.to_owned())),
            );
        }
        // One of them ends the whole question. Halves find it quickly.
        Err(GitError::Failed { message, .. }) if is_outside_repository(&message) => {
            if let (one, other @ [_, ..]) = paths.split_at(paths.len() / 2)
                && !one.is_empty()
            {
                collect_ignored(root, one, found)?;
                collect_ignored(root, other, found)?;
            }
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn is_outside_repository(message: &str) -> bool {
    message.contains("is in submodule") || message.contains("beyond a symbolic link")
}

/// Each of these only reads; what is not here is not run.
const READ_ONLY_SUBCOMMANDS: &[&str] = &[
    "cat-file",
    "check-ignore",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "ls-files",
    "ls-tree",
    "merge-base",
    "rev-list",
    "rev-parse",
    "status",
    "var",
];

/// These read with one option, which comes first, and with none but these after it. One with `=` at its end has a value, as has `-p`.
const READ_ONLY_WITH_OPTION: &[(&str, &str, &[&str])] =
    &[("config", "--get", &["--type=bool"]), ("apply", "--numstat", APPLY), ("apply", "--summary", APPLY)];
const APPLY: &[&str] = &["-z", "-R", "-p", "--directory=", "--unidiff-zero", "--recount", "--inaccurate-eof"];

/// Whether this can only read.
pub(super) fn is_read_only_subcommand(subcommand: &str, arguments: &[OsString]) -> bool {
    let mut options = arguments.iter().map(|argument| argument.as_bytes()).take_while(|word| *word != b"--");
    if READ_ONLY_SUBCOMMANDS.contains(&subcommand) {
        // `diff` and its like write into a file if asked to.
        return !options.any(|option| option.starts_with(b"--output"));
    }
    let first = options.next();
    let mut known = READ_ONLY_WITH_OPTION.iter().filter(|(known, ..)| *known == subcommand);
    let Some((.., allowed)) = known.find(|(_, known, _)| first == Some(known.as_bytes())) else {
        return false;
    };
    let is_known = |option: &[u8]| {
        allowed.iter().any(|known| {
            let takes_value = known.ends_with('=') || *known == "-p";
            option == known.as_bytes() || (takes_value && option.starts_with(known.as_bytes()))
        })
    };
    options.filter(|option| option.starts_with(b"-")).all(is_known)
        // With a value, `config` sets it.
        && (subcommand != "config" || arguments.len() <= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(line: &str) -> bool {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        is_read_only_subcommand(words[0].to_str().unwrap(), &words[1..])
    }

    #[test]
    fn subcommands_that_can_write_run_only_with_read_only_options() {
        assert!(reads("apply --numstat -z -R -p2 --directory=x --recount -- a.patch --apply"));
        assert!(reads("config --get --type=bool merge.autostash"));
        for line in [
            "apply a.patch",
            "apply -z --numstat a.patch",
            "apply --numstat --apply -- a",
            "apply --numstat --app -- a",
            "apply --numstat --build-fake-ancestor=x -- a",
            "apply --numstat --index -- a",
            "config merge.autostash yes",
            "config --get --unset merge.autostash",
            "config --get --type=bool merge.autostash yes",
            "diff --output=x",
        ] {
            assert!(!reads(line), "{line}");
        }
    }
}
