//! Every way to change a file passes the gate: none changes what somebody else has, and each changes what is free.

use std::fs;

use tenure_testkit::{FakeAgent, TestRepository, wait_until};

/// Each changes `a`. `$A` is its whole path.
const WAYS: &[(&str, &str)] = &[
    ("appends", "echo more >> a"),
    ("empties", ": > a"),
    ("sed", "sed -i s/a/x/ a"),
    ("tee", "echo more | tee a > /dev/null"),
    ("tee, appending", "echo more | tee -a a > /dev/null"),
    ("cp over it", "cp b a"),
    ("mv over it", "cp b new; mv -f new a"),
    ("mv away", "mv a gone"),
    ("dd", "echo more | dd of=a conv=notrunc status=none"),
    ("truncate", "truncate -s 1 a"),
    ("ln over it", "ln -f b a"),
    ("a link over it", "ln -sf b a"),
    ("one more name for it", "ln a second"),
    ("chmod", "chmod 600 a"),
    ("rm", "rm -f a; test ! -e a"),
    ("perl", "perl -pi -e s/a/x/ a"),
    ("git apply", "git diff --no-index a c > patch; test -s patch && sed s,/c,/a,g patch | git apply"),
    ("git checkout", "git checkout --quiet HEAD~1 -- a"),
    ("tar", "mkdir -p t; cp c t/a; tar -C t -cf t.tar a; tar -xf t.tar"),
    ("by its whole path", "echo more >> \"$A\""),
    ("by a link", "ln -s a link; echo more >> link"),
    ("through a folder and back", "mkdir -p t; echo more >> t/../a"),
    (
        "by a descriptor of its folder",
        "exec 9< .; python3 -c 'import os; os.write(os.open(\"a\", os.O_WRONLY, dir_fd=9), b\"x\")'",
    ),
    ("by /proc/self", "exec 9< .; echo more >> /proc/self/fd/9/a"),
    ("by a descriptor that only reads", "exec 9< a; echo more > /proc/self/fd/9"),
    ("by where it works", "echo more >> /proc/self/cwd/a"),
    ("python", "python3 -c 'open(\"a\", \"w\").write(\"two\")'"),
    (
        "an editor",
        "python3 -c 'import os; open(\"a.tmp.1.deadbeef\", \"x\").write(\"two\"); os.rename(\"a.tmp.1.deadbeef\", \"a\")'",
    ),
    (
        "exchanged",
        "echo two > other; python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True); r = c.renameat2(-100, b\"a\", -100, b\"other\", 2); exit(0 if r == 0 else 1)'",
    ),
    (
        "by a thread",
        "python3 -c 'import threading, sys; e = []\ndef w():\n  try: open(\"a\", \"a\").write(\"x\")\n  except OSError as x: e.append(x)\nt = threading.Thread(target=w); t.start(); t.join(); sys.exit(len(e))'",
    ),
    ("by a process far below", "sh -c \"sh -c \\\"sh -c 'echo more >> a'\\\"\""),
    ("in the background", "(sleep 0; echo more >> a) & wait $!"),
    (
        "by one that lost its parent",
        "sh -c '(setsid sh -c \"echo more >> a; echo \\$? > code\" &)'; while [ ! -s code ]; do sleep 0.05; done; exit $(cat code)",
    ),
    ("by a static program", "\"$STATIC\" a"),
    ("a folder above it renamed", "mv ../repository ../moved"),
    ("a folder above it renamed, with a slash", "mv ../repository ../moved/"),
    (
        "a folder above it exchanged",
        "mkdir ../other; python3 -c 'import ctypes; c = ctypes.CDLL(None); exit(c.renameat2(-100, b\"../other\", -100, b\"../repository\", 2) != 0)'",
    ),
    (
        "in a folder as its root",
        "python3 -c 'import ctypes, os; how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_APPEND, 0, 0x10); f = ctypes.CDLL(None).syscall(437, os.open(\".\", 0), b\"/a\", how, 24); exit(f < 0 or os.write(f, b\"x\") != 1)'",
    ),
];

/// A program that depends on nothing: it appends a byte to the file that it is given.
const STATIC: &str = r"
#include <fcntl.h>
#include <unistd.h>
int main(int count, char **words) {
    int file = open(words[1], O_WRONLY | O_APPEND);
    return file < 0 || write(file, words[0], 1) != 1;
}
";

fn repo() -> TestRepository {
    let repo = TestRepository::new();
    let result = repo.shell(
        "echo two > c; echo again > a; git add .; git commit --quiet --message second; printf '%s' \"$PROGRAM\" > ../s.c",
    );
    assert_eq!(result.code, Some(0), "{result:?}");
    fs::write(repo.path("static.c"), STATIC).unwrap();
    let result = repo.shell("cc -static -o ../static ../static.c");
    assert_eq!(result.code, Some(0), "{result:?}");
    repo
}

/// Runs this under a guard.
fn guarded(repo: &TestRepository, line: &str) -> tenure_testkit::CommandOutput {
    let mut command = repo.command(&["guard", "--", "sh", "-c", line]);
    command.env("A", repo.file("a")).env("STATIC", repo.path("static"));
    tenure_testkit::CommandOutput::from_output(command.output().unwrap())
}

/// What a person would see of the file: its content, its mode, its names.
fn sight(repo: &TestRepository) -> String {
    repo.shell("stat -c '%a %h %F' a; cat a").output
}

// S4-15, S4-55
#[test]
fn every_way_to_change_a_held_file_is_denied_with_a_reason() {
    let repo = repo();
    let mut owner = FakeAgent::start(&repo, "owner");
    assert!(owner.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let before = sight(&repo);
    for (name, line) in WAYS {
        let result = guarded(&repo, line);
        assert_eq!(sight(&repo), before, "{name}: {result:?}");
        assert_ne!(result.code, Some(0), "{name}: {result:?}");
        let is_taught = result.errors.contains("`a` was not changed: claude (session s1");
        assert!(
            is_taught || result.errors.contains("was not run") || result.errors.contains("tenure:"),
            "{name}: {result:?}"
        );
        repo.shell("git clean -fdq; rm -f .git/index.lock");
    }
}

// S4-15, S4-16, S4-62
#[test]
fn every_way_to_change_a_free_file_succeeds_silently() {
    let repo = repo();
    // The server is there before.
    repo.shell("\"$TENURE\" guard -- true");
    for (name, line) in WAYS {
        if name.contains("a folder above it") {
            continue;
        }
        let before = sight(&repo);
        let result = guarded(&repo, line);
        assert_eq!((result.code, &*result.errors), (Some(0), ""), "{name}: {result:?}");
        assert_ne!(sight(&repo), before, "{name}: {result:?}");
        let result = repo.shell("rm -f a; git checkout --quiet HEAD -- . && git clean -fdq");
        assert_eq!(result.code, Some(0), "{result:?}");
    }
    wait_until("each was given back when its guard ended", || repo.held_files().is_empty());
}

#[test]
fn ignored_and_outside_files_require_no_lease_in_a_guard() {
    let repo = repo();
    let mut owner = FakeAgent::start(&repo, "owner");
    assert!(owner.run_hook(&repo.edit_payload("s1", "b")).is_allowed());
    repo.shell("mkdir target; echo target/ > .gitignore; git add .gitignore; git commit -qm ignore");
    let line = "echo y > target/x && echo y > ../outside && echo y > /dev/null && echo y > .git/description && touch ../done; \
                while [ ! -e ../end ]; do sleep 0.02; done";
    let mut running = repo.command(&["guard", "--", "sh", "-c", line]).spawn().unwrap();
    wait_until("it is written", || repo.path("done").exists());
    assert_eq!(repo.held_files(), ["b"], "nothing of that is leased");
    fs::write(repo.path("end"), "").unwrap();
    assert!(running.wait().unwrap().success());
}

// S4-15
#[test]
fn temporary_looking_names_of_held_files_are_denied() {
    let repo = repo();
    let mut owner = FakeAgent::start(&repo, "owner");
    for name in ["README.Debian", "sums.sha256", "a.tmp"] {
        fs::write(repo.file(name), "one\n").unwrap();
        assert!(owner.run_hook(&repo.edit_payload("s1", name)).is_allowed());
        // Making it fails, since it is there; what comes after that asks as ever.
        let result =
            guarded(&repo, &format!("ln -s b {name}; ln -sf b {name}; rm -f {name}; echo more >> {name}"));
        assert_eq!(fs::read_to_string(repo.file(name)).unwrap(), "one\n", "{name}: {result:?}");
    }
}

// S4-62
#[test]
fn own_changes_of_a_command_are_not_stale() {
    let repo = repo();
    assert_eq!(repo.run(&["install", "git"]).code, Some(0));
    let line = "for word in x y z; do sed -i s/./$word/ a && git commit -qam $word || exit 1; done; \
                git checkout -q -b side HEAD~2 && echo side > b && git commit -qam side && git rebase -q main 2>&1 && git log --oneline | wc -l";
    let mut command = repo.shell_command(&format!("exec \"$TENURE\" guard -- sh -c '{line}'"));
    let result = tenure_testkit::CommandOutput::from_output(command.output().unwrap());
    assert_eq!((result.code, result.output.trim(), &*result.errors), (Some(0), "6", ""), "{result:?}");
}

// S4-62
#[test]
fn open_file_may_be_reopened_by_its_descriptor() {
    let repo = repo();
    let result = guarded(
        &repo,
        "exec > log; echo one; echo two > /dev/stdout; echo three | tee /dev/fd/1 > /dev/null",
    );
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
}

#[test]
fn large_ignored_folder_is_renamed_at_once() {
    let repo = repo();
    let result = repo.shell(
        "echo big/ > .gitignore; git add .; git commit -qm ignore; mkdir big; cd big && seq 1 10500 | xargs touch",
    );
    assert_eq!(result.code, Some(0), "{result:?}");
    let result = guarded(&repo, "mv big ../elsewhere");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
}

#[test]
fn io_uring_is_rejected_in_a_guard() {
    let repo = repo();
    let result = guarded(
        &repo,
        "python3 -c 'import ctypes, errno; c = ctypes.CDLL(None, use_errno=True); c.syscall(425, 8, ctypes.create_string_buffer(256)); \
         exit(0 if ctypes.get_errno() == errno.ENOSYS else 1)'",
    );
    assert_eq!(result.code, Some(0), "{result:?}");
}
