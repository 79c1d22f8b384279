//! A repository that ends, begins or gets another place takes no lease along: what somebody has in it stays as it is.

use std::fs;

use crate::hook_stage::{FakeAgent, Said, Stage};

fn guarded(stage: &Stage, line: &str) -> Said {
    let mut command = stage.shell_command("exec \"$TENURE\" guard -- sh -c \"$LINE\"");
    Said::of(command.env("LINE", line).output().unwrap())
}

/// A repository with another one inside, a linked worktree and a folder that git ignores. Somebody has `a`, `inner/m`,
/// `../linked/a`, `d/m` and `ignored/w/a`, all of them changed and in no commit.
fn stage() -> (Stage, FakeAgent) {
    let stage = Stage::new();
    let said = stage.shell(
        "mkdir d inner ignored; echo one > d/m; echo ignored > .gitignore; git add .; git commit -qm d; \
         cd inner; git init -q; echo one > m; git add m; git commit -qm m; cd ..; \
         git worktree add -q ../linked; git worktree add -q ignored/w; echo one > secret; echo secret >> .gitignore",
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut owner = FakeAgent::start(&stage, "owner");
    for file in HELD {
        owner.edits(&stage, "s1", file, "theirs\n");
    }
    (stage, owner)
}

const HELD: [&str; 5] = ["a", "inner/m", "../linked/a", "d/m", "ignored/w/a"];

// S4-15, S4-55
#[test]
fn what_somebody_has_is_lost_by_no_end_of_its_repository() {
    let (stage, _owner) = stage();
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
        let said = guarded(&stage, line);
        assert_ne!(said.code, Some(0), "{line}: {said:?}");
        assert!(said.errors.contains("session s1"), "it says who is in the way: {line}: {said:?}");
        for file in HELD {
            let text = fs::read_to_string(stage.repository(file)).unwrap_or_default();
            assert_eq!(text, "theirs\n", "{file}: {line}: {said:?}");
        }
        let said = stage.shell("git status > /dev/null && git -C ../linked status > /dev/null");
        assert_eq!(said.code, Some(0), "{line}: {said:?}");
    }
}

// S4-55
#[test]
fn a_folder_above_a_repository_does_not_move_with_what_somebody_has() {
    let stage = Stage::new();
    let said =
        stage.shell("mkdir ../above && cd ../above && git init -q r && echo one > r/a && git -C r add a");
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut owner = FakeAgent::start(&stage, "owner");
    owner.edits(&stage, "s1", "../above/r/a", "theirs\n");
    let said = guarded(&stage, "mv ../above ../moved");
    assert!(said.code != Some(0) && said.errors.contains("session s1"), "{said:?}");
    assert_eq!(fs::read_to_string(stage.path("above/r/a")).unwrap(), "theirs\n");
    owner.hook(&stage.event("s1", "SessionEnd"));
    assert_eq!(guarded(&stage, "mv ../above ../moved").code, Some(0));
}

// S4-16, S4-62
#[test]
fn repositories_come_and_go_where_nobody_is_disturbed() {
    let (stage, mut owner) = stage();
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
        let said = guarded(&stage, line);
        assert_eq!((said.code, &*said.errors), (Some(0), ""), "{line}: {said:?}");
    }
    let said = owner.run("\"$TENURE\" guard -- rm -rf inner");
    assert_eq!((said.code, &*said.errors), (Some(0), ""), "it is its own: {said:?}");
}

// S4-55
#[test]
fn of_many_files_all_are_got_or_none() {
    let stage = Stage::new();
    // What is granted at once has to fit into one segment of the ledger, which in tests are small.
    stage.shell("TENURE_LEDGER_SEGMENT_SIZE=1048576 TENURE_LEDGER_RESERVE=1048576 \"$TENURE\" guard -- sh -c ': >> b'");
    let said = stage.shell(
        "mkdir m; for i in $(seq 1000 1699); do echo one > m/f$i; done; git add .; git commit -qm many; git switch -qc side; \
         sed -i s/one/two/ m/*; git commit -qam two; git switch -q main",
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut owner = FakeAgent::start(&stage, "owner");
    owner.edits(&stage, "s1", "m/f1680", "theirs\n");
    let mut other = FakeAgent::start(&stage, "other");
    other.hook(&stage.event("s2", "SessionStart"));
    let said = other.run("\"$TENURE\" guard -- git checkout -q side");
    assert!(said.code != Some(0) && said.errors.contains("was not run"), "{said:?}");
    assert_eq!(stage.held(), ["m/f1680"], "nothing else is kept from anybody");
    owner.hook(&stage.event("s1", "SessionEnd"));
    stage.shell("git checkout -q m");
    let said = other.run("\"$TENURE\" guard -- git checkout -q side");
    assert_eq!((said.code, &*said.errors), (Some(0), ""), "{said:?}");
}

// S4-15
#[test]
fn what_git_keeps_beside_worktrees_is_gits_own() {
    let stage = Stage::new();
    let said = stage.shell(
        "mkdir ../all && cd ../all && git clone -q --bare ../repository .bare && echo 'gitdir: ./.bare' > .git && \
         git worktree add -q one main && git worktree add -q -b two two main",
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut agents = ["one", "two"].map(|name| FakeAgent::start(&stage, name));
    for (agent, name) in agents.iter_mut().zip(["one", "two"]) {
        agent.hook(&stage.event(name, "SessionStart"));
        let said = agent.run(&format!(
            "cd ../all/{name} && \"$TENURE\" guard -- sh -c 'echo more >> a; git commit -qam {name}; git pack-refs --all'"
        ));
        assert_eq!((said.code, &*said.errors), (Some(0), ""), "{said:?}");
    }
    assert!(stage.held().iter().all(|file| !file.contains(".bare")), "{:?}", stage.held());
}
