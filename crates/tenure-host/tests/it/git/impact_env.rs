//! The git that is asked is told what the agent's git was told: settings, places, how paths are read.

use std::fs;

use tenure_host::git::predict_impact;

use crate::git::impact_support::{
    dirty_repository, predicted_paths, predicted_paths_with, run_and_compare, run_and_compare_with,
    split_arguments, two_branches,
};
use crate::git::support::{git_command, paths};

#[test]
fn revisions_by_message_and_trees_by_path_are_resolved() {
    let repository = two_branches();
    repository.git(&["checkout", "--quiet", "side"]);
    repository.git(&["commit", "--quiet", "--allow-empty", "--message", "the d thing"]);
    repository.git(&["checkout", "--quiet", "main"]);
    let theirs = &["b", "d/b", "new"][..];
    assert_eq!(predicted_paths(&repository.root, "git merge :/thing"), paths(["b", "d/b", "new"]));
    assert_eq!(predicted_paths(&repository.root, "git cherry-pick :/thing"), paths([]), "it is empty");
    assert_eq!(predicted_paths(&repository.root, "git checkout :/nobody"), paths([]));
    assert_eq!(run_and_compare(&repository, "d", "git reset --hard :/thing", theirs), 2);
    repository.git(&["reset", "--hard", "--quiet", ":/work"]);
    repository.git(&["reset", "--hard", "--quiet", "side~2"]);
    // Also a folder is called so: git takes the commit.
    repository.write("d/a", "mine\n");
    assert_eq!(run_and_compare(&repository, "", "git checkout :/d", theirs), 2);
    // Nothing is called so but the folder.
    repository.git(&["commit", "--quiet", "--amend", "--allow-empty", "--message", "other"]);
    repository.git(&["branch", "--quiet", "-f", "side", "HEAD"]);
    assert_eq!(run_and_compare(&repository, "", "git checkout :/d", &["d/a"]), 1);
    let named = predicted_paths(&repository.root, "git read-tree -mu --reset HEAD:d");
    assert_eq!(named, paths([".gitignore", "d/a", "d/b", "new"]));
    assert_eq!(run_and_compare(&repository, "", "git restore -s HEAD:d -- a new", &["new"]), 1);
}

#[test]
fn settings_from_options_environment_and_files_are_applied() {
    let all = &["a", "b", "d/a", "d/b", "new"][..];
    let theirs = &["b", "d/b", "new"][..];
    let counted =
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "merge.autostash"), ("GIT_CONFIG_VALUE_0", "true")];
    run_and_compare_with(&dirty_repository(), "", "git merge side", &counted, all);
    run_and_compare_with(&dirty_repository(), "", "git merge side", &counted[..0], theirs);
    let environment = [("GIT_CONFIG_PARAMETERS", "'merge.autostash'='true'")];
    run_and_compare_with(&dirty_repository(), "", "git merge side", &environment, all);
    run_and_compare_with(
        &dirty_repository(),
        "",
        "git -c merge.autostash=false merge side",
        &environment,
        theirs,
    );
    assert_eq!(
        predicted_paths(&dirty_repository().root, "git --config-env=merge.autoStash=NOBODY_KNOWS merge side")
            .len(),
        5
    );

    let repository = dirty_repository();
    let home = repository.sibling_path("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join(".gitconfig"), "[merge]\nautostash = yes\n").unwrap();
    let home = [("HOME", home.to_str().unwrap())];
    assert_eq!(predicted_paths_with(&repository.root, "git merge side", &home).len(), 5);
    let nobodys = [home[0], ("GIT_CONFIG_GLOBAL", "/dev/null")];
    assert_eq!(predicted_paths_with(&repository.root, "git merge side", &nobodys).len(), 3);

    repository.git(&["config", "branch.main.mergeOptions", "--no-ff --autostash"]);
    assert_eq!(
        predicted_paths(&repository.root, "git merge --no-autostash side"),
        paths(["b", "d/b", "new"])
    );
    assert_eq!(run_and_compare(&repository, "", "git merge side", all), 2);
}

#[test]
fn predicting_fails_where_git_rejects_the_configuration() {
    let repository = dirty_repository();
    let strict = [("GIT_CONFIG_COUNT", "x")];
    let words = split_arguments("git stash");
    let environment = strict.map(|(name, value)| (name.into(), value.into()));
    assert!(predict_impact(&words, &repository.root, &environment).is_err());
    let output = git_command(&repository.root).envs(strict).arg("stash").output().unwrap();
    assert!(!output.status.success());
}

#[test]
fn pathspec_environment_variables_are_applied() {
    for (folder, line, environment, expected, lost) in [
        ("", "git restore *", &[("GIT_LITERAL_PATHSPECS", "1")][..], &[][..], 0),
        ("", "git restore *", &[("GIT_LITERAL_PATHSPECS", "0")], &["a"], 1),
        ("", "git restore A", &[("GIT_ICASE_PATHSPECS", "true")], &["a"], 1),
        ("", "git rm -rf *", &[("GIT_GLOB_PATHSPECS", "1")], &[".gitignore", "a", "b"], 3),
        ("", "git rm -rf *", &[("GIT_NOGLOB_PATHSPECS", "1")], &[], 0),
        // Our own patterns still mean what they mean. (Git itself looks for a file called `:/` then, and leaves what is untracked.)
        ("d", "git stash -u", &[("GIT_LITERAL_PATHSPECS", "1")], &["a", "d/a", "d/u", "u"], 2),
        ("d", "git reset --hard", &[("GIT_LITERAL_PATHSPECS", "1")], &["a", "d/a"], 2),
        ("d", "git checkout-index -f a", &[("GIT_ICASE_PATHSPECS", "1")], &[], 0),
    ] {
        assert_eq!(
            run_and_compare_with(&dirty_repository(), folder, line, environment, expected),
            lost,
            "{line} {environment:?}"
        );
    }
}

#[test]
fn excludes_set_by_the_command_do_not_hide_files() {
    let repository = dirty_repository();
    let list = repository.sibling_path("list");
    fs::write(&list, "u\n").unwrap();
    let setting = format!("git -c core.excludesFile={}", list.display());
    for (rest, expected, lost) in [
        ("clean -f", &[][..], 0),
        ("clean -fx", &["d/u", "u"], 2),
        ("clean -fX", &["d/u", "u"], 2),
        ("clean -fX -- d", &["d/u"], 1),
    ] {
        let repository = dirty_repository();
        assert_eq!(run_and_compare(&repository, "", &format!("{setting} {rest}"), expected), lost, "{rest}");
    }
}

#[test]
fn clean_changes_nothing_unless_forced_or_configured() {
    assert_eq!(run_and_compare(&dirty_repository(), "", "git clean -d", &[]), 0);
    assert_eq!(
        run_and_compare(&dirty_repository(), "", "git -c clean.requireForce=false clean", &["d/u", "u"]),
        2
    );
    assert_eq!(run_and_compare(&dirty_repository(), "", "git -c clean.requireForce=true clean", &[]), 0);
    let repository = dirty_repository();
    repository.git(&["config", "clean.requireForce", "no"]);
    repository.write("fresh/x", "mine\n");
    assert_eq!(run_and_compare(&repository, "", "git clean", &["d/u", "u"]), 2);
    assert_eq!(run_and_compare(&repository, "", "git clean -e x -d", &[]), 0);
    assert_eq!(run_and_compare(&repository, "", "git clean -d", &["fresh/x"]), 1);
}
