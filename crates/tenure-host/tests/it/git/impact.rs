//! Commands of git that change many files at once: each is really run, and whatever it changed was named before.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tenure_host::git::{GitImpact, predict_impact};

use crate::git::impact_support::{
    dirty_repository, predicted_paths, run_and_compare, split_arguments, two_branches,
};
use crate::git::support::{Repository, contents, git_command, git_in, lost_paths, paths};

#[test]
fn discarded_files_are_predicted() {
    for (folder, line, expected, lost) in [
        ("", "git stash", &["a", "d/a"][..], 2),
        ("d", "git stash", &["a", "d/a"], 2),
        ("", "git stash -u", &["a", "d/a", "d/u", "u"], 4),
        ("", "git stash -a", &["a", "d/a", "d/u", "u"], 4),
        ("d", "git stash push -u -- .", &["d/a", "d/u"], 2),
        ("d", "git stash push :/a", &["a"], 1),
        ("", "git -C d -C .. stash push d", &["d/a"], 1),
        ("d", "git reset --hard", &["a", "d/a"], 2),
        ("", "git reset --har side", &["a", "b", "d/a", "d/b", "new"], 4),
        ("", "git checkout -f", &["a", "d/a"], 2),
        ("", "git checkout -f side", &["a", "b", "d/a", "d/b", "new"], 4),
        ("", "git switch --discard-changes side", &["a", "b", "d/a", "d/b", "new"], 4),
        ("d", "git checkout -- *", &[], 0),
        ("d", "git checkout .", &[], 0),
        ("d", "git checkout :/", &["a"], 1),
        ("d", "git checkout HEAD .", &["d/a"], 1),
        ("", "git checkout side -- d", &["d/a", "d/b"], 2),
        ("", "git restore a", &["a"], 1),
        ("d", "git restore -SW :(top)*", &["a", "d/a"], 2),
        ("d", "git restore -s side -- .", &["d/a", "d/b"], 2),
        ("", "git --literal-pathspecs restore *", &[], 0),
        ("", "git --icase-pathspecs restore A", &["a"], 1),
        ("", "git clean -f", &["d/u", "u"], 2),
        ("d", "git clean -fdx", &["d/u"], 1),
        ("", "git clean -fX", &[], 0),
        ("", "git clean -fX -e u", &["d/u", "u"], 2),
        ("", "git clean -fdx -- u *.log", &["u"], 1),
        ("", "git clean", &[], 0),
        ("", "git rm -rfq d", &["d/a", "d/b"], 2),
        ("", "git read-tree --reset -u side", &["a", "b", "d/a", "d/b", "new"], 4),
        ("", "git checkout-index -f a", &["a"], 1),
        ("", "git switch -q --orphan x", &[".gitignore", "a", "b", "d/a", "d/b"], 0),
        ("", "git sparse-checkout set --no-cone /b", &[".gitignore", "a", "b", "d/a", "d/b"], 3),
    ] {
        assert_eq!(run_and_compare(&dirty_repository(), folder, line, expected), lost, "{line}");
    }
}

#[test]
fn files_changed_by_other_commits_are_predicted() {
    let theirs = &["b", "d/b", "new"][..];
    for (folder, line, expected, lost) in [
        ("", "git checkout side", theirs, 2),
        ("d", "git checkout -", theirs, 2),
        ("", "git checkout -q side --", theirs, 2),
        ("", "git checkout -b x side", theirs, 2),
        ("", "git checkout --detach side", theirs, 2),
        ("", "git checkout main...side", &[], 0),
        ("", "git switch side", theirs, 2),
        ("", "git switch -c x side", theirs, 2),
        ("d", "git merge side", theirs, 2),
        ("", "git merge --no-ff side", theirs, 2),
        ("", "git cherry-pick side", theirs, 2),
        ("", "git cherry-pick main..side", theirs, 2),
        ("", "git cherry-pick -n side", theirs, 2),
        ("", "git revert HEAD", &[".gitignore", "a", "b", "d/a", "d/b"], 5),
        ("", "git rebase side", theirs, 2),
        ("", "git reset --keep side", theirs, 2),
        ("", "git read-tree -mu HEAD side", theirs, 2),
    ] {
        assert_eq!(run_and_compare(&two_branches(), folder, line, expected), lost, "{line}");
    }
}

#[test]
fn dirty_files_that_are_kept_are_not_predicted() {
    for line in ["git checkout side", "git switch side", "git merge side"] {
        assert_eq!(predicted_paths(&dirty_repository().root, line), paths(["b", "d/b", "new"]), "{line}");
    }
    // Unless it is put away on the way.
    assert_eq!(predicted_paths(&dirty_repository().root, "git merge --autostash side").len(), 5);
    assert_eq!(predicted_paths(&dirty_repository().root, "git -c merge.autoStash=true merge side").len(), 5);
    let repository = dirty_repository();
    repository.git(&["config", "merge.autostash", "yes"]);
    assert_eq!(run_and_compare(&repository, "", "git merge side", &["a", "b", "d/a", "d/b", "new"]), 2);
    assert_eq!(predicted_paths(&repository.root, "git merge --no-autostash side"), paths([]), "it is merged");
}

#[test]
fn files_restored_by_a_stash_are_predicted() {
    let repository = dirty_repository();
    repository.git(&["stash", "--quiet", "-u"]);
    repository.write("b", "more\n");
    repository.git(&["stash", "--quiet"]);
    assert_eq!(predicted_paths(&repository.root, "git stash apply"), paths(["b"]));
    let all = ["a", "d/a", "d/u", "u"];
    assert_eq!(run_and_compare(&repository, "d", "git stash apply --index 1", &all), 2);
    repository.git(&["reset", "--quiet", "--hard"]);
    repository.git(&["clean", "--quiet", "-fd"]);
    assert_eq!(run_and_compare(&repository, "", "git stash pop stash@{1}", &all), 2);
    assert_eq!(predicted_paths(&repository.root, "git stash pop 5"), paths([]), "there is none");
}

#[test]
fn a_remote_branch_is_guessed_like_git_does() {
    let repository = two_branches();
    repository.git(&["remote", "add", "origin", "."]);
    repository.git(&["fetch", "--quiet", "origin"]);
    repository.git(&["branch", "--quiet", "-D", "side"]);
    assert_eq!(run_and_compare(&repository, "d", "git checkout side", &["b", "d/b", "new"]), 2);
    assert_eq!(predicted_paths(&repository.root, "git switch nobody"), paths([]));
}

#[test]
fn merges_follow_renamed_files() {
    let long = |word: &str| (0..20).map(|line| format!("{word} {line}\n")).collect::<String>();
    let repository = Repository::new();
    repository.commit(&[("b", &long("b")), ("d/one", &long("one")), ("d/two", &long("two"))]);
    repository.git(&["checkout", "--quiet", "-b", "side"]);
    repository.git(&["mv", "d", "e"]);
    repository.commit(&[("b", &(long("b") + "theirs\n"))]);
    repository.git(&["checkout", "--quiet", "main"]);
    repository.git(&["mv", "b", "c"]);
    repository.commit(&[("d/mine", "mine\n")]);
    let named = ["b", "c", "d/mine", "d/one", "d/two", "e/mine", "e/one", "e/two"];
    assert_eq!(predicted_paths(&repository.root, "git cherry-pick side"), paths(named));
    assert_eq!(run_and_compare(&repository, "", "git merge side", &named), 4);
    assert!(repository.root.join("e/mine").exists() && !repository.root.join("d/mine").exists());
}

#[test]
fn aborting_an_operation_predicts_its_files() {
    for begin in ["merge side", "cherry-pick side", "rebase side", "revert --no-edit main~1 side"] {
        let repository = two_branches();
        repository.commit(&[("other", "1\n")]);
        repository.commit(&[("b", "3\n"), ("d/b", "3\n")]);
        git_command(&repository.root).args(begin.split(' ')).output().unwrap();
        let verb = begin.split(' ').next().unwrap();
        let line = format!("git {verb} --abort");
        let named = predicted_paths(&repository.root, &line);
        let before = contents(&repository.root);
        assert!(before[Path::new("b")].starts_with(b"<<<<"), "{begin}");
        git_in(&repository.root, &[verb, "--abort"]);
        let lost = lost_paths(&before, &contents(&repository.root));
        // The first one was undone already.
        assert_eq!(
            named.contains(&"other".into()),
            verb == "revert" || verb == "rebase",
            "{begin}: {named:?}"
        );
        assert!(
            !lost.is_empty() && lost.iter().all(|path| named.contains(path)),
            "{begin}: {named:?} {lost:?}"
        );
    }
}

#[test]
fn obstructing_files_and_folders_are_predicted() {
    let repository = two_branches();
    repository.write("new/x", "mine\n");
    repository.write("new/y/z", "mine\n");
    assert_eq!(
        run_and_compare(&repository, "", "git reset --hard side", &["b", "d/b", "new", "new/x", "new/y/z"]),
        4
    );
    let repository = two_branches();
    repository.git(&["rm", "--quiet", "-r", "--cached", "d"]);
    fs::remove_dir_all(repository.root.join("d")).unwrap();
    repository.write("d", "mine\n");
    assert_eq!(run_and_compare(&repository, "", "git reset --hard", &["d", "d/a", "d/b"]), 1);
}

#[test]
fn assume_unchanged_files_are_predicted() {
    for line in ["git checkout a", "git reset --hard", "git checkout-index -fa"] {
        let repository = two_branches();
        repository.git(&["update-index", "--assume-unchanged", "a"]);
        repository.write("a", "mine\n");
        run_and_compare(&repository, "", line, &["a"]);
    }
}

#[test]
fn file_names_of_any_bytes_are_predicted() {
    let repository = Repository::new();
    let strange = [&b"\xff\xfe"[..], b"new\nline", b":(glob)*", b"quo\"te"].map(OsStr::from_bytes);
    for name in strange {
        repository.write(name, "1\n");
    }
    let expected = {
        let mut paths: Vec<_> = strange.iter().map(PathBuf::from).collect();
        paths.sort_unstable();
        paths
    };
    assert_eq!(predicted_paths(&repository.root, "git clean -f"), expected);
    repository.commit(&[]);
    for name in strange {
        repository.write(name, "2\n");
    }
    assert_eq!(predicted_paths(&repository.root, "git stash"), expected);
    repository.commit(&[]);
    assert_eq!(predicted_paths(&repository.root, "git reset --hard HEAD~1"), expected);
    assert_eq!(predicted_paths(&repository.root, "git merge HEAD~1"), paths([]));
    assert_eq!(predicted_paths(&repository.root, "git revert HEAD"), expected);
}

#[test]
fn environment_and_options_select_the_repository() {
    let repository = dirty_repository();
    let elsewhere = repository.sibling_path("elsewhere");
    fs::create_dir_all(elsewhere.join("d")).unwrap();
    let git_dir = repository.root.join(".git");
    let variable = |name: &str, value: &Path| (OsString::from(name), OsString::from(value));
    let expected = GitImpact {
        root: repository.root.clone(),
        command: "git stash".to_owned(),
        paths: paths(["a", "d/a"]),
        ignored: Vec::new(),
        submodules: false,
    };
    let environment = [
        variable("GIT_DIR", &git_dir),
        variable("GIT_WORK_TREE", &repository.root),
        variable("GIT_EDITOR", Path::new("/nowhere")),
    ];
    let impact = predict_impact(&split_arguments("git stash"), &elsewhere, &environment).unwrap();
    assert_eq!(impact.as_ref(), Some(&expected));
    let line = format!("git --git-dir={} --work-tree ../repo stash", git_dir.display());
    assert_eq!(predict_impact(&split_arguments(&line), &elsewhere, &[]).unwrap(), Some(expected));
    // The folder in which git runs is the tree, if only the repository is named: all that is tracked is missing in it.
    let prediction =
        predict_impact(&split_arguments("git stash"), &elsewhere, &environment[..1]).unwrap().unwrap();
    assert_eq!((prediction.root, prediction.paths.len()), (elsewhere.clone(), 5));

    let index = variable("GIT_INDEX_FILE", &repository.sibling_path("index"));
    fs::copy(git_dir.join("index"), &index.1).unwrap();
    repository.git(&["add", "u"]);
    assert_eq!(predicted_paths(&repository.root, "git checkout-index -fa"), paths(["a"]));
    assert_eq!(predicted_paths(&repository.root, "git clean -f"), paths(["d/u"]));
    let prediction =
        predict_impact(&split_arguments("git clean -f"), &repository.root, &[index]).unwrap().unwrap();
    assert_eq!(prediction.paths, paths(["d/u", "u"]));
}

#[test]
fn worktree_remove_predicts_all_of_its_files() {
    let repository = two_branches();
    repository.git(&["worktree", "add", "--quiet", "../deep/tree", "side"]);
    let tree = repository.sibling_path("deep/tree");
    fs::write(tree.join("u"), "mine\n").unwrap();
    fs::write(tree.join("x.log"), "mine\n").unwrap();
    for line in ["git worktree remove --force ../deep/tree", "git worktree remove tree"] {
        let prediction = predict_impact(&split_arguments(line), &repository.root, &[]).unwrap().unwrap();
        assert_eq!(
            (prediction.root.as_path(), prediction.command.as_str()),
            (tree.as_path(), "git worktree remove")
        );
        assert_eq!(prediction.paths, paths([".gitignore", "a", "b", "d/a", "d/b", "new", "u"]));
        assert_eq!(prediction.ignored, paths(["x.log"]));
    }
}

#[test]
fn commands_that_change_nothing_predict_nothing() {
    let repository = dirty_repository();
    for line in [
        "git status",
        "git diff",
        "git commit -am x",
        "git add -A",
        "git stash list",
        "git stash show",
        "git restore --staged .",
        "git reset --soft HEAD",
        "git checkout -b new",
        "git clean -fdn",
        "git pull",
        "git checkout HEAD",
        "git merge main",
        "git --bare stash",
        "git -C absent stash",
        "git nonsense",
    ] {
        assert_eq!(predict_impact(&split_arguments(line), &repository.root, &[]).unwrap(), None, "{line}");
    }
    let clean = two_branches();
    let nowhere = tempfile::tempdir().unwrap();
    let bare = Repository::with_init(&["init", "--quiet", "--bare"]);
    let folders = [&clean.root, nowhere.path(), &bare.root, &repository.root.join(".git")];
    for folder in folders {
        for line in ["git stash", "git reset --hard", "git checkout .", "git clean -fd"] {
            assert_eq!(
                predict_impact(&split_arguments(line), folder, &[]).unwrap(),
                None,
                "{line} in {folder:?}"
            );
        }
    }
}

#[test]
fn files_are_predicted_before_the_first_commit() {
    let repository = Repository::new();
    repository.write("staged", "mine\n");
    repository.git(&["add", "staged"]);
    repository.write("u", "mine\n");
    assert_eq!(run_and_compare(&repository, "", "git clean -f", &["u"]), 1);
    assert_eq!(run_and_compare(&repository, "", "git reset --hard", &["staged"]), 1);
}
