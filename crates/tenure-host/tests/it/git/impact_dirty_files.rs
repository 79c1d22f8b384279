//! What git leaves alone is not named: another's dirty file refuses nobody's command. And asking changes nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use crate::git::impact_support::{dirty_repository, predicted_paths, run_and_compare, two_branches};
use crate::git::support::{Repository, git_command, paths};

/// A conflict in `b` and `d/b`, and somebody else changed `a` and `d/a`, which have nothing to do with it.
fn in_conflict(begin: &str) -> Repository {
    let repository = two_branches();
    repository.commit(&[("other", "1\n")]);
    repository.commit(&[("b", "3\n"), ("d/b", "3\n")]);
    repository.write("a", "theirs\n");
    git_command(&repository.root).args(begin.split(' ')).output().unwrap();
    assert!(fs::read(repository.root.join("b")).unwrap().starts_with(b"<<<<"), "{begin}");
    repository.write("d/a", "theirs\n");
    repository
}

#[test]
fn aborting_keeps_unrelated_dirty_files_and_does_not_predict_them() {
    for (begin, end, expected) in [
        ("merge side", "git merge --abort", &["b", "d/b", "new"][..]),
        ("cherry-pick side", "git cherry-pick --abort", &["b", "d/b", "new"]),
        ("cherry-pick side", "git cherry-pick --skip", &["b", "d/b", "new"]),
        ("merge side", "git reset --merge", &["b", "d/b", "new"]),
        ("revert --no-edit main~1 side", "git revert --abort", &["b", "d/b", "other"]),
        ("revert --no-edit main~1 side", "git revert --skip", &["b", "d/b", "new"]),
    ] {
        let repository = in_conflict(begin);
        assert!(run_and_compare(&repository, "d", end, expected) >= 2, "{end}");
        for path in ["a", "d/a"] {
            assert_eq!(fs::read(repository.root.join(path)).unwrap(), b"theirs\n", "{end}");
        }
        assert!(!repository.git(&["status"]).contains("conflict"), "{end}");
    }
}

#[test]
fn continuing_predicts_the_remaining_commits() {
    let repository = two_branches();
    repository.git(&["checkout", "--quiet", "side"]);
    repository.commit(&[("last", "2\n"), ("d/a", "2\n")]);
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit(&[("b", "3\n")]);
    repository.write("a", "theirs\n");
    git_command(&repository.root).args(["cherry-pick", "side~1", "side"]).output().unwrap();
    repository.write("b", "mine\n");
    repository.git(&["add", "b"]);
    run_and_compare(&repository, "", "git cherry-pick --continue", &["b", "d/a", "d/b", "last", "new"]);
    assert!(repository.root.join("last").exists());
    assert_eq!(fs::read(repository.root.join("a")).unwrap(), b"theirs\n");
    assert_eq!(predicted_paths(&repository.root, "git cherry-pick --continue"), paths([]), "nothing is left");
}

#[test]
fn merge_abort_predicts_autostashed_files() {
    let repository = two_branches();
    repository.commit(&[("b", "3\n"), ("d/b", "3\n")]);
    repository.write("a", "mine\n");
    git_command(&repository.root).args(["merge", "--autostash", "side"]).output().unwrap();
    repository.write("d/a", "later\n");
    assert_eq!(run_and_compare(&repository, "", "git merge --abort", &["a", "b", "d/a", "d/b", "new"]), 4);
    assert_eq!(fs::read(repository.root.join("a")).unwrap(), b"mine\n");
}

/// `a` is dirty and `d/a` is staged in all of these.
#[test]
fn dirty_files_that_git_keeps_are_not_predicted() {
    for (line, expected, lost) in [
        ("git reset --keep side", &["b", "d/b", "new"][..], 2),
        ("git reset --keep", &[], 0),
        ("git reset --merge", &["d/a"], 1),
        ("git reset --merge side", &["b", "d/a", "d/b", "new"], 3),
        ("git read-tree -mu HEAD", &["d/a"], 1),
        ("git read-tree -mu HEAD side", &["b", "d/b", "new"], 2),
        ("git read-tree -mu side", &["b", "d/a", "d/b", "new"], 3),
        ("git checkout -- .", &["a"], 1),
        ("git restore .", &["a"], 1),
        ("git restore -SW .", &["a", "d/a"], 2),
        ("git submodule update --init", &[], 0),
        ("git clean -fd d", &["d/u"], 1),
    ] {
        assert_eq!(run_and_compare(&dirty_repository(), "", line, expected), lost, "{line}");
    }
}

/// A file that is as it was and has another time is written anew by some verbs, and only by those.
#[test]
fn touched_files_are_predicted_only_where_git_rewrites_them() {
    for (line, is_written) in [
        ("git reset --hard", true),
        ("git checkout -f side", true),
        ("git switch --discard-changes side", true),
        ("git checkout .", true),
        ("git checkout HEAD .", true),
        ("git restore -s side .", true),
        ("git read-tree --reset -u HEAD", true),
        ("git checkout-index -fa", true),
        ("git stash", false),
        ("git reset --merge", false),
        ("git reset --keep side", false),
        ("git checkout side", false),
        ("git merge side", false),
        ("git cherry-pick side", false),
        ("git rebase side", false),
        ("git read-tree -mu HEAD side", false),
    ] {
        let repository = two_branches();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = fs::File::options().write(true).open(repository.root.join("a")).unwrap();
        file.set_modified(old).unwrap();
        let named = predicted_paths(&repository.root, line);
        assert_eq!(named.contains(&"a".into()), is_written, "{line}: {named:?}");
        let expected: Vec<_> = named.iter().map(|path| path.to_str().unwrap()).collect();
        run_and_compare(&repository, "", line, &expected);
        let now = repository.root.join("a").metadata().unwrap().modified().unwrap();
        assert_eq!(now != old, is_written, "{line}");
    }
}

#[test]
fn predicting_writes_nothing_and_runs_no_hooks() {
    let repository = two_branches();
    let hook = repository.root.join(".git/hooks/post-index-change");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ntouch ../ran\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let file = fs::File::options().write(true).open(repository.root.join("a")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let index = || fs::read(repository.root.join(".git/index")).unwrap();
    let before = index();
    for line in [
        "git checkout side -- .",
        "git restore -s side .",
        "git reset --hard side",
        "git merge side",
        "git stash",
        "git clean -fdx",
        "git checkout-index -fa",
        "git -c core.hooksPath=.git/hooks -c core.fsmonitor=.git/hooks/post-index-change restore .",
    ] {
        predicted_paths(&repository.root, line);
        assert!(index() == before && !repository.sibling_path("ran").exists(), "{line}");
    }
    // It is there, and runs.
    repository.git(&["status"]);
    repository.git(&["diff"]);
    assert!(repository.sibling_path("ran").exists());
}
