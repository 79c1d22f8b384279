//! What git knows of real repositories: what was committed, what is dirty, what is staged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_host::git::{
    GitError, committed_paths, dirty_paths, head_content, hooks_folder, ignored_paths, operation_in_progress,
    predict_impact, staged_paths, staged_paths_in,
};

use crate::git::support::{Repository, git_command, git_in, paths};

/// Names that break whoever splits lines, quotes, or takes an argument for an option or a pattern.
const AWKWARD: [&str; 10] = [
    "plain.txt",
    "with space",
    "new\nline",
    "quo\"te's",
    "ünïcode-日本",
    "-leading",
    ":colon",
    ":(glob)*",
    "[a]*?",
    "folder/\\back\tslash",
];

// S4-29
#[test]
fn committed_paths_survive_awkward_names() {
    for format in ["sha1", "sha256"] {
        let format = format!("--object-format={format}");
        let repository = Repository::with_init(&["init", "--quiet", "--initial-branch=main", &format]);
        let first = repository.commit(&AWKWARD.map(|name| (name, "one\n")));
        let mut expected: Vec<_> = AWKWARD.map(PathBuf::from).into();
        expected.sort_unstable();
        assert_eq!(committed_paths(&repository.root, None, &first).unwrap(), expected, "the first commit");

        let second = repository.commit(&[("new\nline", "two\n"), ("[a]*?", "two\n")]);
        let changed = committed_paths(&repository.root, None, &second).unwrap();
        assert_eq!(changed, paths(["[a]*?", "new\nline"]));
        assert_eq!(committed_paths(&repository.root, Some(&first), &second).unwrap(), changed);
        assert_eq!(committed_paths(&repository.root, Some(&first), "HEAD").unwrap(), changed);

        let all: Vec<_> = AWKWARD.map(PathBuf::from).into();
        assert_eq!(dirty_paths(&repository.root, &all).unwrap(), paths([]));
        for name in AWKWARD {
            repository.write(name, "three\n");
            assert_eq!(dirty_paths(&repository.root, &[name.into()]).unwrap(), paths([name]));
            let content = head_content(&repository.root, Path::new(name)).unwrap();
            assert!(content.is_some_and(|content| content.ends_with(b"\n") && content != b"three\n"));
        }
        assert_eq!(dirty_paths(&repository.root, &all).unwrap(), all);
    }
}

#[test]
fn a_rename_reports_both_names_and_a_deletion_one() {
    let repository = Repository::new();
    repository.commit(&[("old.txt", "the same content\n"), ("gone.txt", "x\n")]);
    repository.git(&["mv", "old.txt", "new.txt"]);
    repository.git(&["rm", "--quiet", "gone.txt"]);
    let both = paths(["new.txt", "old.txt"]);
    assert_eq!(dirty_paths(&repository.root, &both).unwrap(), both);
    assert_eq!(staged_paths(&repository.root).unwrap(), paths(["gone.txt", "new.txt", "old.txt"]));
    let commit = repository.commit(&[]);
    let changed = committed_paths(&repository.root, None, &commit).unwrap();
    assert_eq!(changed, paths(["gone.txt", "new.txt", "old.txt"]));
}

#[test]
fn a_merge_reports_its_changes_against_each_parent() {
    let repository = Repository::new();
    repository.commit(&[("base", "x\n")]);
    repository.git(&["checkout", "--quiet", "-b", "side"]);
    repository.commit(&[("theirs", "x\n")]);
    repository.git(&["checkout", "--quiet", "main"]);
    let before = repository.commit(&[("ours", "x\n")]);
    repository.git(&["merge", "--quiet", "--no-edit", "side"]);
    let merge = repository.git(&["rev-parse", "HEAD"]);
    assert_eq!(committed_paths(&repository.root, None, &merge).unwrap(), paths(["ours", "theirs"]));
    assert_eq!(committed_paths(&repository.root, Some(&before), &merge).unwrap(), paths(["theirs"]));
}

#[test]
fn a_plumbing_commit_reports_its_paths() {
    let repository = Repository::new();
    let first = repository.commit(&[("a", "1\n")]);
    repository.write("b", "1\n");
    repository.git(&["add", "b"]);
    let tree = repository.git(&["write-tree"]);
    let commit = repository.git(&["commit-tree", &tree, "-p", &first, "-m", "by hand"]);
    repository.git(&["update-ref", "refs/heads/main", &commit]);
    assert_eq!(committed_paths(&repository.root, Some(&first), &commit).unwrap(), paths(["b"]));
}

// S4-61
#[test]
fn paths_that_differ_from_head_and_are_not_ignored_are_dirty() {
    let repository = Repository::new();
    repository.commit(&[
        (".gitignore", "*.log\n"),
        ("clean", "x\n"),
        ("staged", "x\n"),
        ("edited", "x\n"),
        ("gone", "x\n"),
    ]);
    repository.write("staged", "y\n");
    repository.git(&["add", "staged"]);
    repository.write("edited", "y\n");
    fs::remove_file(repository.root.join("gone")).unwrap();
    repository.write("deep/er/untracked", "x\n");
    repository.write("ignored.log", "x\n");
    let candidates =
        paths(["clean", "staged", "edited", "gone", "deep/er/untracked", "ignored.log", "absent", "deep"]);
    let expected = paths(["staged", "edited", "gone", "deep/er/untracked"]);
    assert_eq!(dirty_paths(&repository.root, &candidates).unwrap(), expected);
    assert_eq!(
        dirty_paths(&repository.root, &[]).unwrap(),
        paths([]),
        "asked about nothing, not about everything"
    );
    let outside = paths(["../elsewhere", "/etc/passwd", "clean"]);
    assert_eq!(dirty_paths(&repository.root, &outside).unwrap(), outside[..2]);
    // Staged, and then undone in the working tree: the index still differs from HEAD.
    repository.write("staged", "x\n");
    assert_eq!(dirty_paths(&repository.root, &paths(["staged"])).unwrap(), paths(["staged"]));
}

#[test]
fn thousands_of_paths_are_queried_in_batches() {
    let repository = Repository::new();
    repository.commit(&[("base", "x\n")]);
    let folder = "a-rather-long-folder-name/".repeat(4);
    let requested: Vec<_> =
        (0..3_000).map(|number| PathBuf::from(format!("{folder}file-{number}"))).collect();
    for path in requested.iter().step_by(500) {
        repository.write(path, "x\n");
    }
    let expected: Vec<_> = requested.iter().step_by(500).cloned().collect();
    assert_eq!(dirty_paths(&repository.root, &requested).unwrap(), expected);
}

#[test]
fn git_queries_do_not_modify_the_repository() {
    let repository = Repository::new();
    let commit = repository.commit(&[("a", "x\n"), ("b", "x\n")]);
    // Touched, so that a git that may write would renew its index.
    repository.write("a", "x\n");
    let snapshot = || {
        let index = repository.root.join(".git/index");
        (
            fs::read(&index).unwrap(),
            fs::metadata(&index).unwrap().modified().unwrap(),
            listing(&repository.root),
        )
    };
    let before = snapshot();
    dirty_paths(&repository.root, &paths(["a", "b"])).unwrap();
    staged_paths(&repository.root).unwrap();
    committed_paths(&repository.root, None, &commit).unwrap();
    head_content(&repository.root, Path::new("a")).unwrap();
    assert!(snapshot() == before);
}

fn listing(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(listing(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn staged_paths_of_a_partial_commit_come_from_its_own_index() {
    let repository = Repository::new();
    repository.commit(&[("a", "x\n"), ("b", "x\n"), ("c", "x\n")]);
    // The hook keeps what git calls the index of this commit.
    let hook = repository.root.join(".git/hooks/pre-commit");
    fs::write(&hook, "#!/bin/sh\ncp \"$GIT_INDEX_FILE\" kept-index\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    repository.write("a", "y\n");
    repository.write("b", "y\n");
    repository.git(&["add", "a"]);
    repository.git(&["commit", "--quiet", "--message", "only b", "--", "b"]);
    repository.git(&["reset", "--quiet", "--soft", "HEAD~1"]);
    let kept = staged_paths_in(&repository.root, Some(Path::new("kept-index"))).unwrap();
    assert_eq!(kept, paths(["b"]));
    assert_eq!(staged_paths(&repository.root).unwrap(), paths(["a", "b"]));
}

#[test]
fn before_the_first_commit_staged_files_are_dirty() {
    let repository = Repository::new();
    repository.write("a", "x\n");
    repository.git(&["add", "a"]);
    assert_eq!(staged_paths(&repository.root).unwrap(), paths(["a"]));
    assert_eq!(dirty_paths(&repository.root, &paths(["a"])).unwrap(), paths(["a"]));
    assert_eq!(head_content(&repository.root, Path::new("a")).unwrap(), None);
}

#[test]
fn head_content_is_complete_or_an_error() {
    let repository = Repository::new();
    let large = "x".repeat((4 << 20) + 1);
    repository.commit(&[("folder/a", "one\r\ntwo"), ("large", &large), ("fits", &large[1..])]);
    let content = |path: &str| head_content(&repository.root, Path::new(path));
    assert_eq!(content("folder/a").unwrap().unwrap(), b"one\r\ntwo");
    assert_eq!(content("fits").unwrap().unwrap().len(), 4 << 20);
    assert!(matches!(content("large"), Err(GitError::OutputTooLarge { .. })));
    repository.commit(&[("twin", "1"), ("twin^{}", "2"), ("twin^{blob}", "3"), ("twin~0", "4")]);
    for (path, expected) in [("twin", "1"), ("twin^{}", "2"), ("twin^{blob}", "3"), ("twin~0", "4")] {
        assert_eq!(content(path).unwrap().unwrap(), expected.as_bytes(), "{path}");
    }
    for absent in ["folder", "b", "twin^0", "fits/x", "folder/../folder/a", "/folder/a", "./folder/a/", ""] {
        assert_eq!(content(absent).unwrap(), None, "{absent}");
    }
}

#[test]
fn a_submodule_reports_its_dirty_files_itself() {
    let submodule = Repository::new();
    submodule.commit(&[("file", "x\n")]);
    let repository = Repository::new();
    repository.commit(&[("a", "x\n")]);
    repository.git(&["submodule", "--quiet", "add", submodule.root.to_str().unwrap(), "sub"]);
    let commit = repository.commit(&[]);
    let changed = committed_paths(&repository.root, None, &commit).unwrap();
    assert_eq!(changed, paths([".gitmodules", "sub"]));
    assert_eq!(head_content(&repository.root, Path::new("sub")).unwrap(), None);
    repository.write("sub/file", "y\n");
    assert_eq!(dirty_paths(&repository.root, &paths(["sub", "sub/file"])).unwrap(), paths([]));
    assert_eq!(dirty_paths(&repository.root.join("sub"), &paths(["file"])).unwrap(), paths(["file"]));
}

#[test]
fn a_linked_worktree_has_its_own_dirty_files_and_operation_in_progress() {
    let repository = Repository::new();
    repository.commit(&[("a", "1\n")]);
    let linked = repository.sibling_path("linked");
    repository.git(&["worktree", "add", "--quiet", "-b", "other", linked.to_str().unwrap()]);
    fs::write(linked.join("a"), "2\n").unwrap();
    assert_eq!(dirty_paths(&linked, &paths(["a"])).unwrap(), paths(["a"]));
    assert_eq!(dirty_paths(&repository.root, &paths(["a"])).unwrap(), paths([]));
    git_in(&linked, &["commit", "--quiet", "--all", "--message", "two"]);
    repository.commit(&[("a", "3\n")]);
    assert!(!git_command(&linked).args(["merge", "--quiet", "main"]).output().unwrap().status.success());
    assert_eq!(operation_in_progress(&repository.root.join(".git/worktrees/linked")), Some("a merge"));
    assert_eq!(operation_in_progress(&repository.root.join(".git")), None);
    assert_eq!(dirty_paths(&linked, &paths(["a"])).unwrap(), paths(["a"]), "unmerged is dirty");
}

#[test]
fn operations_in_progress_are_detected() {
    let repository = Repository::new();
    let git_dir = repository.root.join(".git");
    let base = repository.commit(&[("a", "1\n")]);
    repository.git(&["checkout", "--quiet", "-b", "side"]);
    let theirs = repository.commit(&[("a", "2\n")]);
    repository.git(&["checkout", "--quiet", "main"]);
    let ours = repository.commit(&[("a", "3\n")]);
    let stuck = |arguments: &[&str], undo: &[&str], expected: &str| {
        git_command(&repository.root).args(arguments).output().unwrap();
        assert_eq!(operation_in_progress(&git_dir), Some(expected), "{arguments:?}");
        repository.git(undo);
        assert_eq!(operation_in_progress(&git_dir), None, "{undo:?}");
    };
    stuck(&["merge", "side"], &["merge", "--abort"], "a merge");
    stuck(&["rebase", "side"], &["rebase", "--abort"], "a rebase");
    stuck(&["rebase", "--apply", "side"], &["rebase", "--abort"], "a rebase");
    stuck(&["cherry-pick", &theirs], &["cherry-pick", "--abort"], "a cherry-pick");
    stuck(&["revert", &base], &["revert", "--abort"], "a revert");
    stuck(&["bisect", "start", &ours, &base], &["bisect", "reset"], "a bisect");
    let patch = repository.git(&["format-patch", "-1", "-o", "../patches", "side"]);
    stuck(&["am", &patch], &["am", "--abort"], "applying patches");

    git_command(&repository.root).args(["rebase", "side"]).output().unwrap();
    assert_eq!(dirty_paths(&repository.root, &paths(["a"])).unwrap(), paths(["a"]));
    assert_eq!(head_content(&repository.root, Path::new("a")).unwrap().unwrap(), b"2\n");
}

#[test]
fn missing_repositories_bare_repositories_and_invalid_ids_have_different_errors() {
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(staged_paths(&empty.path().join("absent")), Err(GitError::Failed { .. })));
    assert!(matches!(dirty_paths(empty.path(), &paths(["a"])), Err(GitError::NotARepository)));
    assert!(matches!(committed_paths(empty.path(), None, "HEAD"), Err(GitError::NotARepository)));
    let bare = Repository::with_init(&["init", "--quiet", "--bare"]);
    assert!(matches!(dirty_paths(&bare.root, &paths(["a"])), Err(GitError::Bare)));
    let repository = Repository::new();
    repository.commit(&[("a", "x\n")]);
    for strange in ["--output=x", "-p", "main", "", "HEAD --", &"0".repeat(40), &"g".repeat(40)] {
        let result = committed_paths(&repository.root, None, strange);
        assert!(matches!(result, Err(GitError::Failed { .. })), "{strange}: {result:?}");
    }
}

#[test]
fn a_missing_git_is_reported() {
    // A process of its own, since PATH belongs to the whole process.
    let program = std::env::current_exe().unwrap();
    let child = Command::new(program)
        .args(["--exact", "git::changed_paths::child_queries_without_git", "--ignored", "--nocapture"])
        .env("PATH", "")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(output.contains("there is no `git` in PATH"), "{output}");
}

#[test]
#[ignore = "called by `a_missing_git_is_reported`, with an empty PATH"]
fn child_queries_without_git() {
    let error = staged_paths(Path::new("/")).unwrap_err();
    assert!(matches!(error, GitError::Missing));
    println!("{error}");
}

/// Every git that is started, by a `git` that writes down how it was called.
// S4-6, S4-40, S4-41, S4-60. Nor is a branch, a worktree or anything else of how the repository is used changed: S4-7, S4-8
#[test]
fn every_started_git_is_read_only() {
    let repository = Repository::new();
    repository.commit(&[("a", "x\n"), ("b", "x\n")]);
    repository.write("a", "y\n");
    let path = std::env::var("PATH").unwrap();
    let real =
        std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.exists()).unwrap();
    let calls = repository.sibling_path("calls");
    let git = repository.sibling_path("bin/git");
    fs::create_dir(git.parent().unwrap()).unwrap();
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{}'\nexec '{}' \"$@\"\n",
        calls.display(),
        real.display()
    );
    fs::write(&git, script).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "git::changed_paths::child_runs_every_query", "--ignored", "--nocapture"])
        .env("ROOT_OF_THE_TEST", &repository.root)
        .env("PATH", format!("{}:{path}", git.parent().unwrap().display()))
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let calls = fs::read_to_string(calls).unwrap();
    assert!(calls.lines().count() >= 40, "{calls}");
    // Patterns are patterns only where an agent's own command line is asked about.
    let before = ["--literal-pathspecs ", ""].map(|pathspecs| {
        let root = repository.root.display();
        let settings = "-c core.fsmonitor=false -c diff.autoRefreshIndex=false";
        ["", " -c core.hooksPath=/dev/null"]
            .map(|hooks| format!("--no-optional-locks --no-pager {pathspecs}{settings}{hooks} -C {root} "))
    });
    for call in calls.lines() {
        let rest = before.iter().flatten().find_map(|before| call.strip_prefix(before.as_str()));
        let words: Vec<_> = rest.unwrap_or_default().split(' ').collect();
        let subcommand = match words[..] {
            ["config", "--get", ..] | ["apply", "--numstat" | "--summary", ..] => continue,
            [subcommand, ..] => Some(subcommand),
            [] => None,
        };
        assert!(subcommand == Some("rev-parse") || call.contains("core.hooksPath=/dev/null"), "{call}");
        let reads = [
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
        assert!(subcommand.is_some_and(|subcommand| reads.contains(&subcommand)), "{call}");
    }
}

#[test]
#[ignore = "called by `every_started_git_is_read_only`, with a git of its own"]
fn child_runs_every_query() {
    let root = PathBuf::from(std::env::var_os("ROOT_OF_THE_TEST").unwrap());
    committed_paths(&root, None, "HEAD").unwrap();
    dirty_paths(&root, &paths(["a", "b"])).unwrap();
    staged_paths(&root).unwrap();
    head_content(&root, Path::new("a")).unwrap().unwrap();
    ignored_paths(&root, &paths(["a"])).unwrap();
    for line in [
        "git stash -u",
        "git checkout main a",
        "git restore -m .",
        "git clean -f",
        "git merge main",
        "git revert HEAD",
        "git rebase main",
        "git rebase --abort",
        "git sparse-checkout set x",
        "git apply a",
    ] {
        let words: Vec<_> = line.split(' ').map(Into::into).collect();
        predict_impact(&words, &root, &[]).unwrap();
    }
    hooks_folder(&root).unwrap();
}

#[test]
fn inherited_git_variables_do_not_select_another_repository() {
    let repository = Repository::new();
    repository.commit(&[("a", "x\n")]);
    repository.write("a", "y\n");
    let other = Repository::new();
    let program = std::env::current_exe().unwrap();
    let child = Command::new(program)
        .args([
            "--exact",
            "git::changed_paths::child_queries_inside_another_hook",
            "--ignored",
            "--nocapture",
        ])
        .env("ROOT_OF_THE_TEST", &repository.root)
        .env("GIT_DIR", other.root.join(".git"))
        .env("GIT_WORK_TREE", &other.root)
        .env("GIT_PREFIX", "sub/")
        .env("GIT_LITERAL_PATHSPECS", "0")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(output.contains("dirty: [\"a\"]"), "{output}");
}

#[test]
#[ignore = "called by `inherited_git_variables_do_not_select_another_repository`, with the environment of a hook"]
fn child_queries_inside_another_hook() {
    let root = PathBuf::from(std::env::var_os("ROOT_OF_THE_TEST").unwrap());
    println!("dirty: {:?}", dirty_paths(&root, &paths(["a"])).unwrap());
}
