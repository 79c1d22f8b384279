//! Git commands that would destroy another one's work are not run at all.

use std::fs;

use tenure_testkit::{CommandOutput, FakeAgent, TestRepository};

fn guarded(repo: &TestRepository, line: &str) -> CommandOutput {
    let mut command = repo.shell_command(&format!("exec \"$TENURE\" guard -- sh -c '{line}'"));
    CommandOutput::from_output(command.output().unwrap())
}

/// `a` is another one's, who has changed it; `b` is dirty and nobody's; `new` is untracked and that one's too. There is a branch
/// on which `a` and `b` are different.
fn repo() -> (TestRepository, FakeAgent) {
    let repo = TestRepository::new();
    let result = repo.shell(
        "git switch -q -c side; echo side > a; echo side > b; git commit -qam side; git switch -q main; mkdir sub; \
         echo one > sub/c; git add .; git commit -qm sub",
    );
    assert_eq!(result.code, Some(0), "{result:?}");
    let result = repo.shell("echo secret > .git/info/exclude; git diff main side > ../patch");
    assert_eq!(result.code, Some(0), "{result:?}");
    let mut owner = FakeAgent::start(&repo, "owner");
    for file in ["a", "new", "secret"] {
        owner.edit_file(&repo, "s1", file, "theirs\n");
    }
    fs::write(repo.file("b"), "dirty\n").unwrap();
    (repo, owner)
}

const DESTROYING: &[&str] = &[
    "git stash",
    "git stash push --include-untracked",
    "git -C sub stash",
    "git reset --hard",
    "git reset --hard HEAD~1",
    "git checkout -- .",
    "git checkout -- a",
    "git checkout -f side",
    "git checkout HEAD~1 -- a",
    "git switch -f side",
    "git switch --discard-changes side",
    "git restore .",
    "git restore --source HEAD~1 a",
    "git clean -fd",
    "git clean -f new",
    "git clean -fXq",
    "git clean -fdxq -- secret",
    "git stash -a -- secret",
    "git reset --hard :/side",
    "git checkout -q :/side",
    "git apply ../patch",
    "git apply --index ../patch",
    "git mv sub/c a sub/d",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=merge.autostash GIT_CONFIG_VALUE_0=true git merge side",
    "cd sub && git --work-tree=.. --git-dir=../.git reset --hard",
    "GIT_DIR=$PWD/.git GIT_WORK_TREE=$PWD git reset --hard",
    "git -c alias.wipe=\"reset --hard\" wipe",
    "python3 -c \"import subprocess, sys; sys.exit(subprocess.call([\\\"git\\\", \\\"stash\\\"]))\"",
];

// S4-15, S4-55
#[test]
fn destructive_git_commands_on_held_files_are_not_run() {
    let (repo, _owner) = repo();
    let sight = || {
        repo.shell("cat a b new secret sub/c; git status --porcelain; git stash list; git rev-parse HEAD")
            .output
    };
    let before = sight();
    for line in DESTROYING {
        let result = guarded(&repo, line);
        assert_ne!(result.code, Some(0), "{line}: {result:?}");
        assert_eq!(sight(), before, "{line}: nothing of it happened: {result:?}");
        assert!(
            result.errors.contains("was not run") && result.errors.contains("session s1"),
            "{line}: {result:?}"
        );
    }
}

// S4-16, S4-62
#[test]
fn harmless_git_commands_run_beside_held_files() {
    let (repo, mut owner) = repo();
    for line in [
        "git status",
        "git diff",
        "git add b",
        "git stash list",
        "git log --oneline",
        "git clean -n",
        "git restore --staged b",
    ] {
        let result = guarded(&repo, line);
        assert_eq!((result.code, &*result.errors), (Some(0), ""), "{line}: {result:?}");
    }
    let result = guarded(&repo, "git checkout -- b && git restore sub");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "what that one does not have: {result:?}");
    assert_eq!(fs::read_to_string(repo.file("b")).unwrap(), "one\n");
    // Another one's work in progress is no reason to be stuck in a merge.
    let result = guarded(
        &repo,
        "git checkout -q -b other && echo theirs > sub/c && git commit -qm other sub/c && git checkout -q main && \
                                echo ours > sub/c && git commit -qm ours sub/c; git merge -q other; git merge --abort && cat sub/c",
    );
    assert!(result.code == Some(0) && result.output.ends_with("ours\n"), "{result:?}");
    owner.run_hook(&repo.event_payload("s1", "SessionEnd"));
    let result = guarded(&repo, "git stash --quiet --include-untracked");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
    let result = guarded(&repo, "git checkout --quiet side");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
}

#[test]
fn owner_may_discard_its_own_changes_with_git() {
    let (repo, mut owner) = repo();
    repo.shell("git checkout -q -- b");
    let result = owner.run_line("\"$TENURE\" guard -- git stash --quiet");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "one\n");
}
