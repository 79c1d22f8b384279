//! Which paths were committed, are staged, are not as in HEAD.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::GitError;
use super::query::GitQuery;

/// What of a committed file is read at most. Nobody reads lines of more than that.
const MAX_CONTENT_BYTES: usize = 4 << 20;

/// How many bytes of paths go into one command line: far below what any system takes.
const MAX_BATCH_BYTES: usize = 96 << 10;

/// The paths that the commit `new` changed against `old`; without `old`, against each of its parents. A first
/// commit changed everything that it has. A renamed file is both its names.
///
/// Ids are full ids or `HEAD`.
pub fn committed_paths(root: &Path, old: Option<&str>, new: &str) -> Result<Vec<PathBuf>, GitError> {
    const LIST: [&str; 7] = ["-r", "-z", "-m", "--root", "--no-renames", "--no-commit-id", "--name-only"];
    let commits: Vec<_> = old.into_iter().chain([new]).collect();
    if commits.iter().any(|commit| !is_commit(commit)) {
        return Err(GitError::Failed {
            subcommand: "diff-tree",
            message: "this is no id of a commit".to_owned(),
        });
    }
    let arguments = LIST.into_iter().chain(commits).chain(["--"]);
    let listed = GitQuery::new(root, "diff-tree", arguments).output()?;
    let mut paths: Vec<_> = split_nul_paths(&listed).collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

/// Of these paths (relative to `root`, which is the top of a working tree), those that are not as in HEAD: changed in
/// the index or in the working tree, untracked, or unmerged. An ignored file is none of these.
///
/// What cannot be a path below `root` counts as dirty: nobody knows better.
pub fn dirty_paths(root: &Path, paths: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
    let mut changed = HashSet::new();
    for part in in_batches(paths) {
        let options = [
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--ignored=no",
            "--no-renames",
            // What is dirty inside a submodule is for the submodule to say: it is a tree of its own.
            "--ignore-submodules=dirty",
            "--",
        ];
        let arguments = options.into_iter().map(OsString::from).chain(part);
        changed.extend(status_paths(&GitQuery::new(root, "status", arguments).output()?));
    }
    Ok(paths.iter().filter(|path| changed.contains(*path) || !is_below_root(path)).cloned().collect())
}

/// What the next commit would change. In a hook, git names the index that it means, which differs in a partial commit.
pub fn staged_paths(root: &Path) -> Result<Vec<PathBuf>, GitError> {
    let index = std::env::var_os("GIT_INDEX_FILE").filter(|name| !name.is_empty()).map(PathBuf::from);
    // A hook runs at the top of the tree, and the name may be relative to that.
    staged_paths_in(root, index.map(|index| std::path::absolute(&index).unwrap_or(index)).as_deref())
}

/// [`staged_paths`] for an index that is known. A relative name is relative to `root`.
pub fn staged_paths_in(root: &Path, index: Option<&Path>) -> Result<Vec<PathBuf>, GitError> {
    let arguments = ["--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--"];
    let mut query = GitQuery::new(root, "diff", arguments);
    query.index = index;
    Ok(split_nul_paths(&query.output()?).collect())
}

/// What HEAD has at this path, or nothing if there is no such file (or no commit yet).
pub fn head_content(root: &Path, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
    if !is_below_root(path) {
        return Ok(None);
    }
    // Asked first, so that "no commit yet" is told from "could not look" by a code and not by words.
    let born =
        GitQuery::new(root, "rev-parse", ["--verify", "--quiet", "HEAD^{commit}"]).optional_output()?;
    if born.is_none() {
        return Ok(None);
    }
    // Not `HEAD:path`: there a name such as `a^{}` would mean another file.
    let options = ["-z", "--full-tree", "HEAD", "--"].into_iter().map(OsString::from);
    let listed = GitQuery::new(root, "ls-tree", options.chain([path.into()])).output()?;
    let Some(id) = blob(&listed) else { return Ok(None) };
    let mut query = GitQuery::new(root, "cat-file", [OsString::from("blob"), id]);
    query.max_output_bytes = MAX_CONTENT_BYTES;
    query.output().map(Some)
}

/// The id in the one line `MODE blob ID<tab>NAME`. A folder and a submodule have none.
fn blob(listed: &[u8]) -> Option<OsString> {
    let line = listed.split(|byte| *byte == b'\t').next()?;
    let mut words = line.split(|byte| *byte == b' ').skip(1);
    let is_blob = words.next()? == b"blob";
    is_blob.then_some(OsString::from_vec(words.next()?.to_vec()))
}

/// A full id of either kind of repository, or `HEAD`. Nothing that could be an option.
fn is_commit(name: &str) -> bool {
    name == "HEAD" || (matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Plainly below the root: no `..`, no `.`, not absolute, not the root itself.
pub(super) fn is_below_root(path: &Path) -> bool {
    let mut components = path.components().peekable();
    components.peek().is_some() && components.all(|component| matches!(component, Component::Normal(_)))
}

/// The paths that git can be asked about, in parts that fit a command line.
pub(super) fn in_batches(paths: &[PathBuf]) -> Vec<Vec<OsString>> {
    let mut parts = Vec::new();
    let (mut part, mut size) = (Vec::new(), 0);
    for path in paths.iter().filter(|path| is_below_root(path)) {
        let length = path.as_os_str().len() + 1;
        if size + length > MAX_BATCH_BYTES && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            size = 0;
        }
        size += length;
        part.push(path.clone().into_os_string());
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

pub(super) fn split_nul_paths(listed: &[u8]) -> impl Iterator<Item = PathBuf> {
    listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(to_path)
}

fn to_path(name: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(name))
}

/// The paths in the lines of `git status --porcelain=v2 -z`.
pub(super) fn status_paths(listed: &[u8]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut lines = listed.split(|byte| *byte == 0);
    while let Some(line) = lines.next() {
        // How many words stand before the path depends on the kind of line.
        let words = match line.first() {
            Some(b'1') => 8,
            Some(b'2') => 9,
            Some(b'u') => 10,
            Some(b'?') => 1,
            _ => continue,
        };
        if let Some(path) = line.splitn(words + 1, |byte| *byte == b' ').nth(words) {
            // A repository inside this one is one entry, with a slash at its end.
            paths.push(to_path(path.strip_suffix(b"/").unwrap_or(path)));
        }
        if line.first() == Some(&b'2') {
            paths.extend(lines.next().map(to_path));
        }
    }
    paths
}

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

    #[test]
    fn every_kind_of_status_line_yields_its_paths() {
        let lines = [
            "# branch.oid x",
            "1 .M N... 100644 100644 100644 a b with space",
            "2 R. N... 1 1 1 a b R100 new",
            "old name",
            "u UU N... 1 1 1 1 a b c both",
            "? un\ntracked",
            "? inner/",
            "! ignored",
        ];
        let paths = status_paths((lines.join("\0") + "\0").as_bytes());
        let expected = ["with space", "new", "old name", "both", "un\ntracked", "inner"];
        assert_eq!(paths, expected.map(PathBuf::from));
    }

    #[test]
    fn paths_are_batched_to_fit_command_lines() {
        let paths: Vec<_> =
            (0..40_000).map(|number| PathBuf::from(format!("folder/file-{number}"))).collect();
        let parts = in_batches(&paths);
        assert!(parts.len() > 5);
        assert!(
            parts.iter().all(|part| part.iter().map(|path| path.len() + 1).sum::<usize>() <= MAX_BATCH_BYTES)
        );
        assert_eq!(parts.concat().len(), paths.len());
        assert!(in_batches(&[]).is_empty() && in_batches(&[PathBuf::from("../out")]).is_empty());
    }

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
