//! What the tests of git's verbs share: two branches, and one that is dirty.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use tenure_host::git::predict_impact;

use crate::git::support::{Repository, contents, file_stats, git_command, lost_paths, rewritten_paths};

pub fn split_arguments(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

pub fn predicted_paths(folder: &Path, line: &str) -> Vec<PathBuf> {
    predicted_paths_with(folder, line, &[])
}

pub fn predicted_paths_with(folder: &Path, line: &str, environment: &[(&str, &str)]) -> Vec<PathBuf> {
    let environment: Vec<_> = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    predict_impact(&split_arguments(line), folder, &environment)
        .unwrap()
        .map(|impact| impact.paths)
        .unwrap_or_default()
}

/// Runs the line in this folder of the tree, once it was seen that it names `expected`. Says how many files it changed or
/// took away; all of them were named. Ignored files are nobody's.
pub fn run_and_compare(repository: &Repository, folder: &str, line: &str, expected: &[&str]) -> usize {
    run_and_compare_with(repository, folder, line, &[], expected)
}

pub fn run_and_compare_with(
    repository: &Repository,
    folder: &str,
    line: &str,
    environment: &[(&str, &str)],
    expected: &[&str],
) -> usize {
    let named = predicted_paths_with(&repository.root.join(folder), line, environment);
    assert_eq!(named, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{line}");
    let before = contents(&repository.root);
    let mut run = git_command(&repository.root.join(folder));
    run.envs(environment.iter().copied()).env("GIT_EDITOR", "true");
    let stamps = file_stats(&repository.root);
    run.args(split_arguments(line).split_off(1)).output().unwrap();
    let mut lost = lost_paths(&before, &contents(&repository.root));
    let written = rewritten_paths(&stamps, &repository.root);
    assert!(written.iter().all(|path| named.contains(path)), "{line}: {written:?}");
    lost.retain(|path| path.extension() != Some(OsStr::new("log")));
    assert!(lost.iter().all(|path| named.contains(path)), "{line}: {lost:?}");
    lost.len()
}

/// Tracked: `a`, `b`, `d/a`, `d/b`. On `side`, `b` and `d/b` differ and `new` is there.
pub fn two_branches() -> Repository {
    let repository = Repository::new();
    let all = [("a", "1\n"), ("b", "1\n"), ("d/a", "1\n"), ("d/b", "1\n"), (".gitignore", "*.log\n")];
    repository.commit(&all);
    repository.git(&["checkout", "--quiet", "-b", "side"]);
    repository.commit(&[("b", "2\n"), ("d/b", "2\n"), ("new", "2\n")]);
    repository.git(&["checkout", "--quiet", "main"]);
    repository
}

/// And: `a` is changed, `d/a` is staged, `d/u` and `u` are untracked, `x.log` is ignored.
pub fn dirty_repository() -> Repository {
    let repository = two_branches();
    for path in ["a", "d/a", "u", "d/u", "x.log"] {
        repository.write(path, "mine\n");
    }
    repository.git(&["add", "d/a"]);
    repository
}
