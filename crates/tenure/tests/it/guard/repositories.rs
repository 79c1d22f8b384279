//! A repository that ends, begins or gets another place takes no lease along: what somebody has in it stays as it is.

use std::fs;

use tenure_testkit::{CommandOutput, FakeAgent, TestRepository, wait_until};

fn guarded(repo: &TestRepository, line: &str) -> CommandOutput {
    let mut command = repo.shell_command("exec \"$TENURE\" guard -- sh -c \"$LINE\"");
    CommandOutput::from_output(command.env("LINE", line).output().unwrap())
}

/// A repository with another one inside, a linked worktree and a folder that git ignores. Somebody has `a`, `inner/m`,
/// `../linked/a`, `d/m` and `ignored/w/a`, all of them changed and in no commit.
fn repo() -> (TestRepository, FakeAgent) {
    let repo = TestRepository::new();
    let result = repo.shell(
        "mkdir d inner ignored; echo one > d/m; echo ignored > .gitignore; git add .; git commit -qm d; \
         cd inner; git init -q; echo one > m; git add m; git commit -qm m; cd ..; \
         git worktree add -q ../linked; git worktree add -q ignored/w; echo one > secret; echo secret >> .gitignore",
    );
    assert_eq!(result.code, Some(0), "{result:?}");
    let mut owner = FakeAgent::start(&repo, "owner");
    for file in HELD {
        owner.edit_file(&repo, "s1", file, "theirs\n");
    }
    (repo, owner)
}

const HELD: [&str; 5] = ["a", "inner/m", "../linked/a", "d/m", "ignored/w/a"];

// S4-15, S4-55
#[test]
fn held_files_survive_every_change_of_their_repository() {
    let (repo, _owner) = repo();
    for line in [
        "rm -rf ../repository",
        "rm -rf .git; sleep 1.2; echo mine > a",
        "mv .git .g && echo mine > a && mv .g .git",
        "rm -rf ../linked",
        "rm -rf inner",
        "git clean -ffdq",
        "rm -f ../linked/.git; sleep 1.2; echo mine > ../linked/a",
        "git -C d init -q; sleep 1.2; echo mine > d/m",
        "python3 -c 'import os; os.symlink(\"../.git\", \"d/.git\")'; sleep 1.2; echo mine > d/m",
        "mv ../linked ../elsewhere",
        "mv ignored another",
    ] {
        let result = guarded(&repo, line);
        assert_ne!(result.code, Some(0), "{line}: {result:?}");
        assert!(result.errors.contains("session s1"), "it says who is in the way: {line}: {result:?}");
        for file in HELD {
            let text = fs::read_to_string(repo.file(file)).unwrap_or_default();
            assert_eq!(text, "theirs\n", "{file}: {line}: {result:?}");
        }
        let result = repo.shell("git status > /dev/null && git -C ../linked status > /dev/null");
        assert_eq!(result.code, Some(0), "{line}: {result:?}");
    }
}

// H1, S4-55
#[test]
fn denied_removal_of_a_packed_repository_keeps_it_intact() {
    let repo = TestRepository::new();
    // Everything is packed, so `refs` has no file, and the hooks, the index and the reflog are all that is not in a pack.
    let result = repo.shell(
        "echo 'exit 0' > .git/hooks/pre-push; echo staged > new; git add new; git worktree add -q ../linked; \
         git gc -q; git pack-refs --all",
    );
    assert_eq!(result.code, Some(0), "{result:?}");
    let state = |repo: &TestRepository| {
        let result = repo.shell(
            "git rev-parse HEAD; git status --porcelain; git reflog; git worktree list; git fsck; ls .git/hooks; \
             test -d .git/refs && test -d .git/objects && echo whole",
        );
        assert_eq!(result.code, Some(0), "{result:?}");
        result.output
    };
    let mut owner = FakeAgent::start(&repo, "owner");
    owner.edit_file(&repo, "s1", "a", "theirs\n");
    let before = state(&repo);
    for line in [
        "rm -rf .git",
        "python3 -c 'import shutil; shutil.rmtree(\".git\", ignore_errors=True)'; false",
        "rmdir .git/refs/heads .git/refs/tags .git/refs",
        "find .git/refs -depth -type d -exec rmdir {} +; rmdir .git/objects/* .git/objects",
        "rm .git/index",
        "mv .git/index ../index",
        "rm -r .git/hooks",
        "rm -r .git/logs",
        "mv .git/refs ../refs",
        "mv .git/objects .git/o",
        "python3 -c 'import os; [os.rmdir(\".git/refs/\" + one) for one in os.listdir(\".git/refs\")]; os.rmdir(\".git/refs\")'",
    ] {
        let result = guarded(&repo, line);
        assert_ne!(result.code, Some(0), "{line}: {result:?}");
        assert!(result.errors.contains("session s1"), "it names the session in the way: {line}: {result:?}");
        assert_eq!(state(&repo), before, "{line}: {result:?}");
    }
    owner.run_hook(&repo.event_payload("s1", "SessionEnd"));
    owner.edit_file(&repo, "s2", "../linked/a", "theirs\n");
    for line in ["rm -rf .git", "rm -r .git/worktrees"] {
        let result = guarded(&repo, line);
        assert!(result.code != Some(0) && result.errors.contains("session s2"), "{line}: {result:?}");
        assert_eq!(state(&repo), before, "a linked worktree is held: {line}");
    }
    owner.run_hook(&repo.event_payload("s2", "SessionEnd"));
    let result = guarded(&repo, "rm -rf .git");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "no session holds a file: {result:?}");
    assert!(!repo.file(".git").exists());
}

// H1
#[test]
fn repository_folders_that_git_does_not_require_are_removable() {
    let repo = TestRepository::new();
    let mut owner = FakeAgent::start(&repo, "owner");
    owner.edit_file(&repo, "s1", "a", "theirs\n");
    for line in [
        "mkdir -p x/y && rmdir x/y x && mkdir -p x/y && rm -r x",
        "git branch feature/one && git branch -D -q feature/one && git branch feature",
        "git branch other/one && git pack-refs --all && git gc -q && git branch -D -q other/one",
        "mkdir -p .git/refs/heads/feature2/deep && rmdir .git/refs/heads/feature2/deep .git/refs/heads/feature2",
        "mkdir .git/objects/zz && rmdir .git/objects/zz",
        "mkdir ../bare && cd ../bare && git init -q --bare . && cd .. && rm -rf bare",
        "echo two > b && git add b && git commit -qm b && git stash list && git gc -q --prune=now",
        "git worktree add -q ../third && git worktree remove ../third",
    ] {
        let result = guarded(&repo, line);
        assert_eq!((result.code, &*result.errors), (Some(0), ""), "{line}: {result:?}");
    }
    assert_eq!(repo.shell("git status > /dev/null").code, Some(0));
}

// S4-55
#[test]
fn folder_above_a_repository_with_held_files_cannot_be_renamed() {
    let repo = TestRepository::new();
    let result =
        repo.shell("mkdir ../above && cd ../above && git init -q r && echo one > r/a && git -C r add a");
    assert_eq!(result.code, Some(0), "{result:?}");
    let mut owner = FakeAgent::start(&repo, "owner");
    owner.edit_file(&repo, "s1", "../above/r/a", "theirs\n");
    let result = guarded(&repo, "mv ../above ../moved");
    assert!(result.code != Some(0) && result.errors.contains("session s1"), "{result:?}");
    assert_eq!(fs::read_to_string(repo.path("above/r/a")).unwrap(), "theirs\n");
    owner.run_hook(&repo.event_payload("s1", "SessionEnd"));
    assert_eq!(guarded(&repo, "mv ../above ../moved").code, Some(0));
}

// S4-16, S4-62
#[test]
fn unheld_repositories_can_be_created_moved_and_removed() {
    let (repo, mut owner) = repo();
    for line in [
        "git init -q new && echo one > new/a && git -C new add a && git -C new commit -qm a && rm -rf new",
        "git clone -q . ../clone && rm -rf ../clone",
        "git worktree add -q ../third && git worktree remove ../third",
        "mkdir -p x/y && mv x z && rm -r z",
        "mkdir x && mv x y && mv y z && mv z y && echo one > y/f && mv y z && git -C z init -q && rm -rf z",
        "echo one > node && rm node && mkdir node && mv node other && rmdir other",
        "mkdir -p .git/objects/ab && echo 1 > .git/objects/tmp_x && mv .git/objects/tmp_x .git/objects/ab/zz",
        "echo 1 > .git/refs/heads/new.lock && rm .git/refs/heads/new.lock",
        "git switch -q -c side && git switch -q -",
    ] {
        let result = guarded(&repo, line);
        assert_eq!((result.code, &*result.errors), (Some(0), ""), "{line}: {result:?}");
    }
    let result = owner.run_line("\"$TENURE\" guard -- rm -rf inner");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "it is its own: {result:?}");
}

// H2
#[test]
fn held_file_stays_held_when_git_ignores_it() {
    for line in [
        "git rm -q --cached a; echo a > .git/info/exclude; echo mine > a",
        "git read-tree --empty; echo a > .git/info/exclude; echo mine > a",
        "git read-tree --empty; echo a > .gitignore; rm -f a",
        "git rm -q --cached a; echo a > ../all; git config core.excludesFile \"$PWD/../all\"; sed -i s/theirs/mine/ a",
        "git rm -q --cached a; echo a > .git/info/exclude; mkdir x; mv a x/a",
        "git rm -q --cached a; echo '*' > .git/info/exclude; echo mine > x; mv x a",
    ] {
        let repo = TestRepository::with_retry_after(1);
        let mut owner = FakeAgent::start(&repo, "owner");
        owner.edit_file(&repo, "s1", "a", "theirs\n");
        let result = guarded(&repo, line);
        assert_ne!(result.code, Some(0), "{line}: {result:?}");
        assert!(result.errors.contains("session s1"), "{line}: {result:?}");
        assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "theirs\n", "{line}: {result:?}");
        let result = owner.run_line("\"$TENURE\" guard -- sh -c 'echo more >> a'");
        assert_eq!((result.code, &*result.errors), (Some(0), ""), "its own session writes it: {line}");
        let mut other = FakeAgent::start(&repo, "other");
        let result = other.run_hook(&repo.edit_payload("s2", "a"));
        assert!(!result.is_allowed(), "a hook is asked too: {line}: {result:?}");
    }
}

// H2
#[test]
fn ignored_file_is_denied_as_soon_as_a_session_holds_it() {
    let repo = TestRepository::new();
    assert_eq!(
        repo.shell("echo out > .gitignore; echo one > out; mkdir target; echo target >> .gitignore").code,
        Some(0)
    );
    let mut owner = FakeAgent::start(&repo, "owner");
    owner.run_hook(&repo.event_payload("s1", "SessionStart"));
    let mut writer = FakeAgent::start(&repo, "writer");
    writer.start_line(
        "\"$TENURE\" guard -- sh -c 'echo two > out; for i in 1 2 3; do echo x > target/$i; done; : > ../wrote; \
         while ! test -e ../acquired; do echo x > target/4; sleep 0.01; done; echo mine > target/5; echo mine > out'",
    );
    wait_until("the first writes", || repo.path("wrote").exists());
    assert_eq!(repo.held_files(), Vec::<String>::new(), "no lease is taken on what git ignores");
    owner.edit_file(&repo, "s1", "out", "theirs\n");
    fs::write(repo.path("acquired"), "").unwrap();
    let result = writer.finish_line();
    assert!(result.code != Some(0) && result.errors.contains("session s1"), "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("out")).unwrap(), "theirs\n");
    assert_eq!(fs::read_to_string(repo.file("target/5")).unwrap(), "mine\n");
    assert_eq!(repo.held_files(), ["out"]);
}

// S4-55
#[test]
fn leases_for_many_files_are_atomic() {
    let repo = TestRepository::new();
    // What is granted at once has to fit into one segment of the ledger, which in tests are small.
    repo.shell("TENURE_LEDGER_SEGMENT_SIZE=1048576 TENURE_LEDGER_RESERVE=1048576 \"$TENURE\" guard -- sh -c ': >> b'");
    let result = repo.shell(
        "mkdir m; for i in $(seq 1000 1699); do echo one > m/f$i; done; git add .; git commit -qm many; git switch -qc side; \
         sed -i s/one/two/ m/*; git commit -qam two; git switch -q main",
    );
    assert_eq!(result.code, Some(0), "{result:?}");
    let mut owner = FakeAgent::start(&repo, "owner");
    owner.edit_file(&repo, "s1", "m/f1680", "theirs\n");
    let mut other = FakeAgent::start(&repo, "other");
    other.run_hook(&repo.event_payload("s2", "SessionStart"));
    let result = other.run_line("\"$TENURE\" guard -- git checkout -q side");
    assert!(result.code != Some(0) && result.errors.contains("was not run"), "{result:?}");
    assert_eq!(repo.held_files(), ["m/f1680"], "nothing else is kept from anybody");
    owner.run_hook(&repo.event_payload("s1", "SessionEnd"));
    repo.shell("git checkout -q m");
    let result = other.run_line("\"$TENURE\" guard -- git checkout -q side");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
}

// S4-15
#[test]
fn bare_repository_beside_worktrees_requires_no_lease() {
    let repo = TestRepository::new();
    let result = repo.shell(
        "mkdir ../all && cd ../all && git clone -q --bare ../repository .bare && echo 'gitdir: ./.bare' > .git && \
         git worktree add -q one main && git worktree add -q -b two two main",
    );
    assert_eq!(result.code, Some(0), "{result:?}");
    let mut agents = ["one", "two"].map(|name| FakeAgent::start(&repo, name));
    for (agent, name) in agents.iter_mut().zip(["one", "two"]) {
        agent.run_hook(&repo.event_payload(name, "SessionStart"));
        let result = agent.run_line(&format!(
            "cd ../all/{name} && \"$TENURE\" guard -- sh -c 'echo more >> a; git commit -qam {name}; git pack-refs --all'"
        ));
        assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
    }
    assert!(repo.held_files().iter().all(|file| !file.contains(".bare")), "{:?}", repo.held_files());
}
