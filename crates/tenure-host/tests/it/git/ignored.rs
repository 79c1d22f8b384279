//! What git ignores, asked of real repositories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tenure_host::git::{GitError, ignored_paths};

use crate::git::support::{Repository, paths};

#[test]
fn tracked_files_and_their_folders_are_not_ignored() {
    let repository = Repository::new();
    repository.commit(&[(".gitignore", "build/\n*.log\nnow/\n"), ("now/x", "x\n"), ("a", "x\n")]);
    repository.write("build/keep", "x\n");
    repository.write("now/y", "x\n");
    repository.write("kept.log", "x\n");
    repository.git(&["add", "--force", "build/keep", "kept.log", "now/x"]);
    let candidates = paths([
        "a",
        "absent",
        "build",
        "build/keep",
        "build/other",
        "build/deep/absent",
        "kept.log",
        "new.log",
        "folder/new.log",
        "now",
        "now/x",
        "now/y",
    ]);
    let expected = paths(["build/other", "build/deep/absent", "new.log", "folder/new.log", "now/y"]);
    assert_eq!(ignored_paths(&repository.root, &candidates).unwrap(), expected);
    // Without a tracked file below, the folder itself is ignored.
    repository.git(&["rm", "--quiet", "--cached", "build/keep"]);
    assert_eq!(ignored_paths(&repository.root, &paths(["build", "build/keep"])).unwrap().len(), 2);
    assert_eq!(ignored_paths(&repository.root, &paths(["a"])).unwrap(), paths([]), "none of them");
    assert_eq!(ignored_paths(&repository.root, &[]).unwrap(), paths([]));
}

#[test]
fn ignored_paths_are_matched_literally() {
    let repository = Repository::new();
    repository.write(".gitignore", "*.log\n");
    let strange: Vec<PathBuf> = [&b"\xff\xfe.log"[..], b":(top)x.log", b"-n.log", b"new\nline.log", b"*.txt"]
        .map(|name| OsStr::from_bytes(name).into())
        .into();
    assert_eq!(ignored_paths(&repository.root, &strange).unwrap(), strange[..4]);
}

#[test]
fn paths_outside_the_repository_are_not_ignored_and_do_not_affect_the_rest() {
    let submodule = Repository::new();
    submodule.commit(&[("file", "x\n")]);
    let repository = Repository::new();
    repository.commit(&[(".gitignore", "*.log\n"), ("folder/a", "x\n")]);
    repository.git(&["submodule", "--quiet", "add", submodule.root.to_str().unwrap(), "inner"]);
    symlink("folder", repository.root.join("link")).unwrap();
    let mut requested: Vec<PathBuf> = (0..20).map(|number| format!("{number}.log").into()).collect();
    let mut expected = requested.clone();
    for (at, name) in [(3, "inner/x.log"), (7, "link/x.log"), (11, "../out.log"), (12, "/abs.log"), (24, "")]
    {
        requested.insert(at, name.into());
    }
    assert_eq!(ignored_paths(&repository.root, &requested).unwrap(), expected);
    expected.clear();
    assert_eq!(ignored_paths(&repository.root, &paths(["inner/x.log"])).unwrap(), expected);
}

#[test]
fn ignored_fails_without_a_repository() {
    let empty = tempfile::tempdir().unwrap();
    fs::write(empty.path().join("a"), "x").unwrap();
    assert!(matches!(ignored_paths(empty.path(), &paths(["a"])), Err(GitError::NotARepository)));
}
