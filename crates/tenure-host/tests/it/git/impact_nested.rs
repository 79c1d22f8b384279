//! Repositories inside the tree, submodules, and what is ignored.

use std::fs;
use std::path::PathBuf;

use tenure_host::git::{GitImpact, predict_impact};

use crate::git::impact_support::{dirty_repository, run_and_compare, split_arguments, two_branches};
use crate::git::support::{Repository, git_in, paths};

fn impact(repository: &Repository, line: &str) -> Option<GitImpact> {
    predict_impact(&split_arguments(line), &repository.root, &[]).unwrap()
}

/// With a repository in `inner` (tracked `x`, untracked `y`, ignored `z.log`), and one more in that.
fn with_nested() -> Repository {
    let repository = two_branches();
    for folder in ["inner", "inner/deep"] {
        repository.write(format!("{folder}/x"), "1\n");
        repository.write(format!("{folder}/.gitignore"), "*.log\n");
        let folder = repository.root.join(folder);
        git_in(&folder, &["init", "--quiet"]);
        git_in(&folder, &["add", "x", ".gitignore"]);
        git_in(&folder, &["commit", "--quiet", "--message", "work"]);
        fs::write(folder.join("y"), "mine\n").unwrap();
        fs::write(folder.join("z.log"), "mine\n").unwrap();
    }
    repository
}

/// With a submodule in `sub` (tracked `x`, untracked `y`).
fn with_submodule() -> Repository {
    let repository = two_branches();
    let other = repository.sibling_path("other");
    fs::create_dir(&other).unwrap();
    git_in(&other, &["init", "--quiet"]);
    fs::write(other.join("x"), "1\n").unwrap();
    git_in(&other, &["add", "x"]);
    git_in(&other, &["commit", "--quiet", "--message", "work"]);
    repository.git(&["submodule", "--quiet", "add", "../other", "sub"]);
    repository.commit(&[]);
    repository.write("sub/y", "mine\n");
    repository
}

#[test]
fn clean_predicts_all_files_of_a_nested_repository() {
    let all =
        ["inner/.gitignore", "inner/deep/.gitignore", "inner/deep/x", "inner/deep/y", "inner/x", "inner/y"];
    assert_eq!(run_and_compare(&with_nested(), "", "git clean -fd", &[]), 0);
    assert_eq!(run_and_compare(&with_nested(), "", "git clean -ff", &[]), 0);
    assert_eq!(run_and_compare(&with_nested(), "", "git clean -ffd", &all), 6);
    assert_eq!(run_and_compare(&with_nested(), "", "git clean -f -d --force -- inner", &all), 6);
    let prediction = impact(&with_nested(), "git clean -ffd").unwrap();
    assert_eq!(prediction.ignored, paths(["inner/deep/z.log", "inner/z.log"]));
}

#[test]
fn removing_a_submodule_predicts_all_its_files() {
    for (line, expected, lost) in [
        ("git submodule deinit -f sub", &["sub/x", "sub/y"][..], 2),
        ("git submodule deinit -f --all", &["sub/x", "sub/y"], 2),
        ("git submodule deinit sub", &["sub/x", "sub/y"], 0),
        ("git submodule deinit -f .", &["sub/x", "sub/y"], 2),
        ("git submodule deinit", &[], 0),
        ("git rm -rfq sub", &[".gitmodules", "sub/x", "sub/y"], 3),
        ("git rm -rfq d", &["d/a", "d/b"], 2),
        ("git mv sub to", &[".gitmodules", "sub/x", "sub/y", "to/x", "to/y"], 3),
        ("git submodule update --init --force", &[], 0),
    ] {
        assert_eq!(run_and_compare(&with_submodule(), "", line, expected), lost, "{line}");
    }
}

#[test]
fn recursion_into_submodules_is_reported() {
    let recurses = |repository: &Repository, line: &str| {
        impact(repository, line).map(|prediction| prediction.submodules)
    };
    let repository = with_submodule();
    assert_eq!(recurses(&repository, "git reset --hard --recurse-submodules"), Some(true));
    assert_eq!(recurses(&repository, "git reset --hard"), None);
    assert_eq!(recurses(&repository, "git checkout side"), Some(false));
    assert_eq!(recurses(&repository, "git -c submodule.recurse=true checkout side"), Some(true));
    repository.git(&["config", "submodule.recurse", "true"]);
    for line in ["git reset --hard", "git switch side", "git restore .", "git read-tree -mu HEAD"] {
        assert_eq!(recurses(&repository, line), Some(true), "{line}");
    }
    assert_eq!(recurses(&repository, "git checkout --no-recurse-submodules side"), Some(false));
    assert_eq!(recurses(&repository, "git stash"), None);
    let without = two_branches();
    assert_eq!(recurses(&without, "git reset --hard --recurse-submodules"), None, "there is none");
}

#[test]
fn removed_ignored_files_are_reported_separately() {
    let repository = dirty_repository();
    repository.write("d/y.log", "mine\n");
    repository.write("only.log/z", "mine\n");
    let ignored =
        |line: &str| impact(&repository, line).map(|prediction| prediction.ignored).unwrap_or_default();
    let all = paths(["d/y.log", "only.log", "x.log"]);
    for line in ["git clean -fdx", "git clean -fdX", "git stash -a", "git -C d stash -a"] {
        assert_eq!(ignored(line), all, "{line}");
    }
    assert_eq!(ignored("git clean -fdx d"), paths(["d/y.log"]));
    assert_eq!(ignored("git -C d clean -fdx"), paths(["d/y.log"]));
    for line in ["git clean -fd", "git clean -fdxn", "git clean -dx", "git stash -u"] {
        assert_eq!(ignored(line), Vec::<PathBuf>::new(), "{line}");
    }
    let only = impact(&repository, "git clean -fdX").unwrap();
    assert_eq!((only.paths, only.submodules), (paths([]), false), "and nothing else");
}
