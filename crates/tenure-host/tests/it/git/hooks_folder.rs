//! Where git looks for hooks, compared with where it really runs them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tenure_host::git::{GitError, hooks_folder};

use crate::git::support::{Repository, git_in};

/// Puts a hook into that folder and sees that git runs it.
fn git_runs_hooks_of(folder: &Path, root: &Path) {
    fs::create_dir_all(folder).unwrap();
    let ran = folder.join("ran");
    let hook = folder.join("post-commit");
    fs::write(&hook, format!("#!/bin/sh\ntouch '{}'\n", ran.display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    git_in(root, &["commit", "--quiet", "--allow-empty", "--message", "x"]);
    assert!(ran.exists(), "git runs no hooks of {}", folder.display());
}

#[test]
fn hooks_folder_is_where_git_runs_hooks() {
    let repository = Repository::new();
    let plain = hooks_folder(&repository.root).unwrap();
    assert_eq!(plain.path, repository.root.join(".git/hooks"));
    assert!(!plain.is_configured && !plain.is_in_tree);
    git_runs_hooks_of(&plain.path, &repository.root);

    let linked = repository.sibling_path("linked worktree");
    repository.git(&["worktree", "add", "--quiet", "-b", "other", linked.to_str().unwrap()]);
    let shared = hooks_folder(&linked).unwrap();
    assert_eq!((&shared.path, &shared.root), (&plain.path, &linked));
    assert!(!shared.is_configured);

    repository.write("sub/x", "");
    assert_eq!(hooks_folder(&repository.root.join("sub")).unwrap(), plain);
}

#[test]
fn a_configured_hooks_path_is_respected() {
    let repository = Repository::new();
    repository.write("sub/x", "");
    for (configured, expected, is_in_tree) in [
        (".husky/_", repository.root.join(".husky/_"), true),
        ("./odd//hooks", repository.root.join("odd/hooks"), true),
        (repository.sibling_path("all hooks").to_str().unwrap(), repository.sibling_path("all hooks"), false),
    ] {
        repository.git(&["config", "core.hooksPath", configured]);
        for root in [&repository.root, &repository.root.join("sub")] {
            let folder = hooks_folder(root).unwrap();
            assert_eq!(folder.path, expected);
            assert_eq!((folder.is_configured, folder.is_in_tree), (true, is_in_tree));
        }
        git_runs_hooks_of(&expected, &repository.root);
    }
}

#[test]
fn without_a_working_tree_there_is_no_hooks_folder() {
    let bare = Repository::with_init(&["init", "--quiet", "--bare"]);
    assert!(matches!(hooks_folder(&bare.root), Err(GitError::Bare)));
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(hooks_folder(empty.path()), Err(GitError::NotARepository)));
}
