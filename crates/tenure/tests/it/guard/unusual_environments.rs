//! A guard in places that are not as usual: namespaces, limits, pipes that nobody reads, a server that is stopped.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{getpid, set_child_subreaper};
use tenure_testkit::{CommandOutput, FakeAgent, TestRepository, now, signal};

/// A repository in which somebody else has `a`.
fn held() -> (TestRepository, FakeAgent) {
    let repo = TestRepository::new();
    let mut owner = FakeAgent::start(&repo, "owner");
    assert!(owner.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    (repo, owner)
}

#[test]
fn guard_runs_in_a_pid_namespace() {
    let repo = TestRepository::new();
    let result =
        repo.shell("unshare --pid --fork --mount-proc \"$TENURE\" guard -- sh -c 'echo ran; exit 4'");
    assert_eq!((result.code, &*result.output, &*result.errors), (Some(4), "ran\n", ""));
}

#[test]
fn nested_guard_in_a_pid_namespace_only_runs_the_command() {
    let repo = TestRepository::new();
    let result = repo.shell(
        "\"$TENURE\" guard -- unshare --pid --fork --mount-proc setsid --wait \"$TENURE\" guard -- \
         sh -c 'echo more >> a; exit 4'",
    );
    assert_eq!((result.code, &*result.errors), (Some(4), ""), "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "one\nmore\n");
}

#[test]
fn guard_leaves_no_child_behind_under_a_subreaper() {
    let repo = TestRepository::new();
    // Whoever loses its parent falls to this test, which lets nobody go.
    set_child_subreaper(Some(getpid())).unwrap();
    for _ in 0..3 {
        assert_eq!(repo.run(&["guard", "--", "true"]).code, Some(0));
    }
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let children = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap());
    assert_eq!(children.collect::<String>(), "", "each is a keeper that nobody buried");
}

#[test]
fn denial_does_not_block_on_a_full_stderr_pipe() {
    let (repo, _owner) = held();
    let (reader, mut writer) = std::io::pipe().unwrap();
    // As much as a pipe takes.
    writer.write_all(&[b'x'; 65_536]).unwrap();
    let line = "exec 2> /dev/null; echo more >> a || echo refused";
    let mut command = repo.command(&["guard", "--", "sh", "-c", line]);
    let result = CommandOutput::from_output(command.stderr(writer).output().unwrap());
    assert_eq!((result.code, &*result.output), (Some(0), "refused\n"));
    drop(reader);
}

#[test]
fn file_size_limit_does_not_change_a_denial() {
    let (repo, _owner) = held();
    let result = repo.shell("ulimit -f 0; exec \"$TENURE\" guard -- sh -c 'echo more >> a || exit 5'");
    assert!(result.code == Some(5) && result.errors.contains("`a` was not changed"), "{result:?}");
}

#[test]
fn suspended_server_is_awaited_only_once() {
    let (repo, _owner) = held();
    let (server, started_at) = (repo.daemon_pid().unwrap(), now());
    signal(server, "STOP");
    let result = repo.run(&["guard", "--", "sh", "-c", "echo more >> b"]);
    signal(server, "CONT");
    assert_eq!(result.code, Some(2), "{result:?}");
    assert!(result.errors.contains("it has said nothing for 12 s"), "{result:?}");
    assert!(!result.errors.contains(".sock"), "where it listens helps nobody: {result:?}");
    assert!(now() - started_at < Duration::from_secs(20), "{:?}", now() - started_at);
}

#[test]
fn failed_call_has_the_error_of_an_unguarded_one_or_a_reason() {
    let repo = TestRepository::new();
    let result = repo.run(&["guard", "--", "bash", "-c", ": > $(printf %020000d 0)"]);
    assert!(result.errors.contains("File name too long") && !result.errors.contains("tenure:"), "{result:?}");
    std::os::unix::fs::symlink("/dev/stdout", repo.file("out")).unwrap();
    let result = repo.run(&["guard", "--", "sh", "-c", "echo more > out"]);
    assert!(result.errors.contains("a link leads where only the program itself can follow"), "{result:?}");
}

#[test]
fn login_shell_by_the_name_of_the_shim_is_guarded() {
    let (repo, _owner) = held();
    let template = repo.shell_command("");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.env_clear().envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.arg0("-tenure-bash").args(["-c", "shopt -q login_shell && echo yes; echo more >> a"]);
    let result =
        CommandOutput::from_output(command.current_dir(repo.file("")).stdin(Stdio::null()).output().unwrap());
    assert_eq!((result.code, &*result.output), (Some(1), "yes\n"), "{result:?}");
    assert!(result.errors.contains("`a` was not changed"), "{result:?}");
}
