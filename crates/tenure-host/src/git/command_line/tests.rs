//! Command lines and what they do.

use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn verb(line: &str) -> Option<GitOperation> {
    parse(&words(line)).map(|line| line.operation)
}

fn word(text: &str) -> Option<OsString> {
    (!text.is_empty()).then(|| text.into())
}

fn lose(untracked: bool, paths: &str) -> GitOperation {
    GitOperation::Discard { untracked, ignored: false, paths: words(paths) }
}

fn lose_all(paths: &str) -> GitOperation {
    GitOperation::Discard { untracked: true, ignored: true, paths: words(paths) }
}

fn checkout(start: &str, after: Option<&str>, is_forced: bool, is_merged: bool) -> GitOperation {
    GitOperation::Checkout { words: words(start), after: after.map(words), is_forced, is_merged }
}

fn restore(source: &str, is_merged: bool, paths: &str) -> GitOperation {
    GitOperation::Restore { source: word(source), is_merged, paths: words(paths) }
}

#[test]
fn command_lines_that_change_no_files_parse_to_none() {
    for line in [
        "git",
        "git status",
        "git log --all",
        "git diff HEAD",
        "git add -A",
        "git commit -am x",
        "git fetch",
        "git pull --rebase",
        "git branch -D x",
        "git stash list",
        "git stash show -p",
        "git stash drop",
        "git stash clear",
        "git stash create",
        "git-stash list",
        "git stash --help",
        "git stash -h",
        "git --help stash",
        "git restore --staged a",
        "git restore -S .",
        "git restore --stag .",
        "git reset",
        "git reset --soft HEAD~1",
        "git reset --mixed",
        "git reset HEAD a",
        "git reset -p",
        "git checkout",
        "git checkout -b new",
        "git checkout -qb new",
        "git checkout -B new",
        "git checkout --orphan new",
        "git checkout --detach",
        "git switch -c new",
        "git switch --create=new",
        "git switch -d",
        "git clean -n",
        "git clean -fdn",
        "git clean -f --dry",
        "git clean -fdXn",
        "git mv -n a b",
        "git mv a",
        "git apply",
        "git apply -",
        "git apply --check a.patch",
        "git apply --stat --summary a.patch",
        "git apply --cached a.patch",
        "git am --show-current-patch=diff",
        "git submodule update --init",
        "git submodule deinit",
        "git rm --cached a",
        "git rm -n a",
        "git merge --continue",
        "git merge --quit",
        "git cherry-pick --quit",
        "git rebase --quit",
        "git rebase --show-current-patch",
        "git am --quit",
        "git worktree list",
        "git worktree add ../x",
        "git submodule status",
        "git sparse-checkout list",
        "git read-tree HEAD",
        "git read-tree -m HEAD",
        "git read-tree -mun HEAD",
        "git checkout-index -a",
        "git an-alias --hard",
    ] {
        assert_eq!(verb(line), None, "{line}");
    }
}

#[test]
fn commands_that_discard_changes_are_parsed() {
    let reset = |to: &str| GitOperation::ResetHard { to: word(to) };
    let clean = |letters: &str, excluded: &str, paths: &str| {
        let has = |letter: char| letters.contains(letter);
        GitOperation::Clean(CleanOptions {
            is_forced: has('f'),
            folders: has('d'),
            repositories: letters.contains("ff"),
            ignored: match (has('x'), has('X')) {
                (true, _) => IgnoredFilesMode::Remove,
                (_, true) => IgnoredFilesMode::RemoveOnly,
                _ => IgnoredFilesMode::Keep,
            },
            excluded: words(excluded),
            paths: words(paths),
        })
    };
    let patches = |files: &str, options: &str, rejects, is_merged| PatchArguments {
        files: words(files),
        options: words(options),
        rejects,
        is_merged,
    };
    for (line, expected) in [
        ("git stash", lose(false, "")),
        ("git stash -u", lose(true, "")),
        ("git stash --include", lose(true, "")),
        ("git stash -a", lose_all("")),
        ("git stash -u --no-include-untracked", lose(false, "")),
        ("git stash push a b", lose(false, "a b")),
        ("git stash push -um text -- a", lose(true, "a")),
        ("git stash -- *.rs", lose(false, "*.rs")),
        ("git stash save a message", lose(false, "")),
        ("git stash push --pathspec-from-file=x", lose(false, "")),
        ("git stash push --unheard-of a", lose_all("")),
        ("/usr/lib/git-core/git-stash push a", lose(false, "a")),
        ("git -C sub -c a.b=c --no-pager stash push a", lose(false, "a")),
        ("git reset --hard", reset("")),
        ("git reset --har HEAD~2", reset("HEAD~2")),
        ("git reset -q main --keep", GitOperation::ResetKeep { to: word("main") }),
        ("git reset --merge --", GitOperation::ResetMerge { to: None }),
        ("git clean -f", clean("f", "", "")),
        ("git clean -i", clean("f", "", "")),
        ("git clean -fdx -e a b", clean("fdx", "a", "b")),
        ("git clean -fX -e a --exclude=c", clean("fX", "a c", "")),
        ("git clean -f --force", clean("ff", "", "")),
        ("git clean -fn --no-dry-run", clean("f", "", "")),
        ("git clean", clean("", "", "")),
        ("git clean -f --unheard a", clean("ffdx", "", "")),
        ("git mv -f a b -- -c", GitOperation::Move { sources: words("a b"), destination: "-c".into() }),
        ("git apply a.patch - b", GitOperation::Apply(patches("a.patch b", "", false, None))),
        ("git apply --stat --apply a", GitOperation::Apply(patches("a", "", false, None))),
        (
            "git apply -3 -p 2 --directory=x --recount --reject -- -a",
            GitOperation::Apply(patches("-a", "-p2 --directory=x --recount", true, Some(true))),
        ),
        ("git am", GitOperation::ApplyMails(patches("", "", false, None))),
        ("git am --no-3way -p0 a", GitOperation::ApplyMails(patches("a", "-p0", false, Some(false)))),
        ("git submodule -q deinit -f a b", GitOperation::Deinit { paths: words("a b") }),
        ("git submodule deinit --all", GitOperation::Deinit { paths: words("") }),
        ("git rm -rf a :/b", GitOperation::Remove { paths: words("a :/b") }),
        ("git sparse-checkout set a", GitOperation::Everything),
        ("git switch --orphan x", GitOperation::Everything),
        ("git worktree remove -f ../x", GitOperation::WorktreeRemove { tree: "../x".into() }),
        ("git read-tree -mu a b", GitOperation::ReadTree { trees: words("a b"), is_reset: false }),
        ("git read-tree --reset -u a", GitOperation::ReadTree { trees: words("a"), is_reset: true }),
        ("git read-tree -u --prefix=x/ a", GitOperation::Everything),
        ("git checkout-index -f a", GitOperation::CheckoutIndex { files: words("a") }),
        ("git checkout-index -fa", GitOperation::CheckoutIndex { files: words("") }),
    ] {
        assert_eq!(verb(line), Some(expected), "{line}");
    }
}

#[test]
fn checkout_switch_and_restore_are_parsed() {
    let switch = |to: &str, is_forced| GitOperation::Switch { to: word(to), is_forced };
    for (line, expected) in [
        ("git checkout main", checkout("main", None, false, false)),
        ("git checkout -", checkout("-", None, false, false)),
        ("git checkout main a b", checkout("main a b", None, false, false)),
        ("git checkout -q main -- -a", checkout("main", Some("-a"), false, false)),
        ("git checkout -- .", checkout("", Some("."), false, false)),
        ("git checkout .", checkout(".", None, false, false)),
        ("git checkout -f", checkout("", None, true, false)),
        ("git checkout --forc main", checkout("main", None, true, false)),
        ("git checkout -m main", checkout("main", None, false, true)),
        ("git checkout -p", checkout("", None, true, false)),
        ("git checkout --pathspec-from-file x main", checkout("main", Some(""), true, false)),
        ("git checkout --unheard a -- b", checkout("a", Some(""), true, false)),
        ("git checkout -b new main", switch("main", false)),
        ("git checkout -fb new", switch("", true)),
        ("git switch main", switch("main", false)),
        ("git switch -c new main", switch("main", false)),
        ("git switch --discard main", switch("main", true)),
        ("git switch -f main", switch("main", true)),
        ("git switch -m main", switch("main", true)),
        ("git restore .", restore("", false, ".")),
        ("git restore -SW a", restore("HEAD", false, "a")),
        ("git restore --staged --worktree a", restore("HEAD", false, "a")),
        ("git restore -SW -s side a", restore("side", false, "a")),
        ("git restore -s HEAD~1 a", restore("HEAD~1", false, "a")),
        ("git restore --sou=HEAD~1 -- a", restore("HEAD~1", false, "a")),
        ("git restore -m a", restore("", true, "a")),
        ("git restore --pathspec-from-file=x", restore("", false, "")),
    ] {
        assert_eq!(verb(line), Some(expected), "{line}");
    }
}

#[test]
fn commands_that_integrate_changes_are_parsed() {
    let merge = |with: &str, autostash| GitOperation::Merge { with: words(with), autostash };
    let pick = |commits: &str, is_backwards| GitOperation::Pick { commits: words(commits), is_backwards };
    let apply = |stash: &str, is_branch| GitOperation::StashApply { stash: word(stash), is_branch };
    let rebase = |onto: &str, upstream: &str, branch: &str| GitOperation::Rebase {
        onto: word(onto),
        upstream: word(upstream),
        branch: word(branch),
    };
    for (line, expected) in [
        ("git merge", merge("", None)),
        ("git merge --no-ff -m text a b", merge("a b", None)),
        ("git merge --autos a", merge("a", Some(true))),
        ("git merge --autostash --no-autostash a", merge("a", Some(false))),
        ("git merge -s ours a", merge("a", None)),
        ("git merge -s subtree a", GitOperation::Everything),
        ("git merge -Xsubtree=lib a", GitOperation::Everything),
        ("git merge --abort", GitOperation::MergeAbort),
        ("git cherry-pick -x -s a b..c", pick("a b..c", false)),
        ("git cherry-pick -m 1 a", pick("a", false)),
        ("git cherry-pick --all", GitOperation::Everything),
        ("git revert --no-edit HEAD", pick("HEAD", true)),
        (
            "git revert --abort",
            GitOperation::ResumeSequence(SequencerAction { aborts: true, ..SequencerAction::default() }),
        ),
        (
            "git cherry-pick --skip",
            GitOperation::ResumeSequence(SequencerAction { skips: true, ..SequencerAction::default() }),
        ),
        (
            "git cherry-pick --cont",
            GitOperation::ResumeSequence(SequencerAction { continues: true, ..SequencerAction::default() }),
        ),
        ("git stash pop", apply("", false)),
        ("git stash apply --index 1", apply("1", false)),
        ("git stash branch new stash@{2}", apply("stash@{2}", true)),
        ("git rebase", rebase("", "", "")),
        ("git rebase -i --onto a b c", rebase("a", "b", "c")),
        ("git rebase --root", GitOperation::Everything),
        ("git rebase --continue", GitOperation::ResumeRebaseOrAm),
        ("git am --abort", GitOperation::ResumeRebaseOrAm),
    ] {
        assert_eq!(verb(line), Some(expected), "{line}");
    }
}

#[test]
fn the_displayed_command_is_the_canonical_one() {
    for (line, name) in [
        ("git -C x stash -u", "git stash"),
        ("git-stash pop", "git stash pop"),
        ("git reset --har", "git reset --hard"),
        ("git reset --keep x", "git reset --keep"),
        ("/usr/bin/git checkout x", "git checkout"),
        ("git worktree remove x", "git worktree remove"),
        ("git submodule deinit x", "git submodule deinit"),
        ("git apply x", "git apply"),
    ] {
        assert_eq!(parse(&words(line)).unwrap().name, name, "{line}");
    }
}

#[test]
fn submodule_recursion_follows_the_options_or_the_setting() {
    for (line, expected) in [
        ("git reset --hard --recurse-submodules", Some(true)),
        ("git checkout --recurse-sub x", Some(true)),
        ("git switch --recurse-submodules --no-recurse-submodules x", Some(false)),
        ("git restore --recurse-submodules=no x", Some(false)),
        ("git read-tree -u --reset x", None),
        ("git stash", Some(false)),
    ] {
        assert_eq!(parse(&words(line)).unwrap().recurses_into_submodules, expected, "{line}");
    }
}
