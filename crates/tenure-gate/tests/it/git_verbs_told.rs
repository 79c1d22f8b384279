//! The git that is asked is told what the agent's git was told: settings, places, how paths are read.

use std::fs;

use tenure_gate::git::overwritten;

use crate::git_support::{command, paths};
use crate::git_verbs_support::{asked, asked_with, dirty, run, run_with, two_branches, words};

#[test]
fn revisions_by_message_and_trees_by_path_are_resolved() {
    let repository = two_branches();
    repository.git(&["checkout", "--quiet", "side"]);
    repository.git(&["commit", "--quiet", "--allow-empty", "--message", "the d thing"]);
    repository.git(&["checkout", "--quiet", "main"]);
    let theirs = &["b", "d/b", "new"][..];
    assert_eq!(asked(&repository.root, "git merge :/thing"), paths(["b", "d/b", "new"]));
    assert_eq!(asked(&repository.root, "git cherry-pick :/thing"), paths([]), "it is empty");
    assert_eq!(asked(&repository.root, "git checkout :/nobody"), paths([]));
    assert_eq!(run(&repository, "d", "git reset --hard :/thing", theirs), 2);
    repository.git(&["reset", "--hard", "--quiet", ":/work"]);
    repository.git(&["reset", "--hard", "--quiet", "side~2"]);
    // Also a folder is called so: git takes the commit.
    repository.write("d/a", "mine\n");
    assert_eq!(run(&repository, "", "git checkout :/d", theirs), 2);
    // Nothing is called so but the folder.
    repository.git(&["commit", "--quiet", "--amend", "--allow-empty", "--message", "other"]);
    repository.git(&["branch", "--quiet", "-f", "side", "HEAD"]);
    assert_eq!(run(&repository, "", "git checkout :/d", &["d/a"]), 1);
    let named = asked(&repository.root, "git read-tree -mu --reset HEAD:d");
    assert_eq!(named, paths([".gitignore", "d/a", "d/b", "new"]));
    assert_eq!(run(&repository, "", "git restore -s HEAD:d -- a new", &["new"]), 1);
}

#[test]
fn settings_from_options_environment_and_files_are_applied() {
    let all = &["a", "b", "d/a", "d/b", "new"][..];
    let theirs = &["b", "d/b", "new"][..];
    let counted =
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "merge.autostash"), ("GIT_CONFIG_VALUE_0", "true")];
    run_with(&dirty(), "", "git merge side", &counted, all);
    run_with(&dirty(), "", "git merge side", &counted[..0], theirs);
    let told = [("GIT_CONFIG_PARAMETERS", "'merge.autostash'='true'")];
    run_with(&dirty(), "", "git merge side", &told, all);
    run_with(&dirty(), "", "git -c merge.autostash=false merge side", &told, theirs);
    assert_eq!(asked(&dirty().root, "git --config-env=merge.autoStash=NOBODY_KNOWS merge side").len(), 5);

    let repository = dirty();
    let home = repository.beside("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join(".gitconfig"), "[merge]\nautostash = yes\n").unwrap();
    let home = [("HOME", home.to_str().unwrap())];
    assert_eq!(asked_with(&repository.root, "git merge side", &home).len(), 5);
    let nobodys = [home[0], ("GIT_CONFIG_GLOBAL", "/dev/null")];
    assert_eq!(asked_with(&repository.root, "git merge side", &nobodys).len(), 3);

    repository.git(&["config", "branch.main.mergeOptions", "--no-ff --autostash"]);
    assert_eq!(asked(&repository.root, "git merge --no-autostash side"), paths(["b", "d/b", "new"]));
    assert_eq!(run(&repository, "", "git merge side", all), 2);
}

#[test]
fn predicting_fails_where_git_rejects_the_configuration() {
    let repository = dirty();
    let strict = [("GIT_CONFIG_COUNT", "x")];
    let words = words("git stash");
    let environment = strict.map(|(name, value)| (name.into(), value.into()));
    assert!(overwritten(&words, &repository.root, &environment).is_err());
    let said = command(&repository.root).envs(strict).arg("stash").output().unwrap();
    assert!(!said.status.success());
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
        assert_eq!(run_with(&dirty(), folder, line, environment, expected), lost, "{line} {environment:?}");
    }
}

#[test]
fn excludes_set_by_the_command_do_not_hide_files() {
    let repository = dirty();
    let list = repository.beside("list");
    fs::write(&list, "u\n").unwrap();
    let setting = format!("git -c core.excludesFile={}", list.display());
    for (rest, expected, lost) in [
        ("clean -f", &[][..], 0),
        ("clean -fx", &["d/u", "u"], 2),
        ("clean -fX", &["d/u", "u"], 2),
        ("clean -fX -- d", &["d/u"], 1),
    ] {
        let repository = dirty();
        assert_eq!(run(&repository, "", &format!("{setting} {rest}"), expected), lost, "{rest}");
    }
}

#[test]
fn clean_changes_nothing_unless_forced_or_configured() {
    assert_eq!(run(&dirty(), "", "git clean -d", &[]), 0);
    assert_eq!(run(&dirty(), "", "git -c clean.requireForce=false clean", &["d/u", "u"]), 2);
    assert_eq!(run(&dirty(), "", "git -c clean.requireForce=true clean", &[]), 0);
    let repository = dirty();
    repository.git(&["config", "clean.requireForce", "no"]);
    repository.write("fresh/x", "mine\n");
    assert_eq!(run(&repository, "", "git clean", &["d/u", "u"]), 2);
    assert_eq!(run(&repository, "", "git clean -e x -d", &[]), 0);
    assert_eq!(run(&repository, "", "git clean -d", &["fresh/x"]), 1);
}
