//! A guard is nothing that a command notices: codes, signals, streams and what stays in the background are as without it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use tenure_testkit::{CommandOutput, FakeAgent, TestRepository, signal, wait_until};

fn guarded(repo: &TestRepository, line: &str) -> CommandOutput {
    CommandOutput::from_output(repo.command(&["guard", "--", "sh", "-c", line]).output().unwrap())
}

#[test]
fn guarded_command_exits_like_an_unguarded_one() {
    let repo = TestRepository::new();
    assert_eq!(guarded(&repo, "exit 7").code, Some(7));
    for (name, number) in [("KILL", 9), ("INT", 2), ("TERM", 15), ("SEGV", 11)] {
        let line = format!("kill -{name} $$");
        let output = repo.command(&["guard", "--", "sh", "-c", &line]).output().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{name}: {output:?}");
        assert!(!output.status.core_dumped(), "{name}: the command's memory says more than ours");
    }
    let result = repo.run(&["guard", "--", "there-is-no-such-command"]);
    assert_eq!(result.code, Some(127), "{result:?}");
    assert!(result.errors.contains("there is no command there-is-no-such-command"), "{result:?}");
    let result = repo.run(&["guard"]);
    assert_eq!(result.code, Some(64), "{result:?}");
}

#[test]
fn guarded_command_has_the_standard_streams_of_its_guard() {
    let repo = TestRepository::new();
    let mut command = repo.command(&["guard", "--", "sh", "-c", "cat; echo wrong >&2"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"through").unwrap();
    let result = CommandOutput::from_output(child.wait_with_output().unwrap());
    assert_eq!((result.code, &*result.output, &*result.errors), (Some(0), "through", "wrong\n"));
}

#[test]
fn signal_to_the_guard_is_passed_to_the_command() {
    let repo = TestRepository::new();
    let mut command = repo.command(&[
        "guard",
        "--",
        "sh",
        "-c",
        "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done",
    ]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

// S4-15
#[test]
fn background_process_is_still_guarded_and_does_not_block_the_caller() {
    let repo = TestRepository::new();
    let line =
        "(while [ ! -e ../go ]; do sleep 0.02; done; echo more >> a; echo $? > ../done) > /dev/null 2>&1 &";
    let result = guarded(&repo, line);
    assert_eq!(result.code, Some(0), "the command is over, and its pipes are closed: {result:?}");
    let mut owner = FakeAgent::start(&repo, "owner");
    assert!(owner.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    fs::write(repo.path("go"), "").unwrap();
    wait_until("the background tried", || repo.path("done").exists());
    wait_until("it says how", || fs::read_to_string(repo.path("done")).is_ok_and(|code| !code.is_empty()));
    assert_ne!(fs::read_to_string(repo.path("done")).unwrap().trim(), "0");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "one\n");
}

#[test]
fn nested_guard_only_runs_the_command() {
    let repo = TestRepository::new();
    let result = guarded(
        &repo,
        "\"$0\" guard -- sh -c 'echo more >> a; exit 4'".replace("$0", env!("CARGO_BIN_EXE_tenure")).as_str(),
    );
    assert_eq!((result.code, &*result.errors), (Some(4), ""), "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "one\nmore\n");
}

#[test]
fn shim_runs_a_guarded_bash() {
    let repo = TestRepository::new();
    let mut owner = FakeAgent::start(&repo, "owner");
    assert!(owner.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tenure"), repo.path("tenure-bash")).unwrap();
    let result =
        repo.shell("../tenure-bash -c '[ -n \"$BASH_VERSION\" ] && echo free >> b && echo more >> a'");
    assert_eq!(result.code, Some(1), "{result:?}");
    assert!(result.errors.contains("`a` was not changed: claude"), "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("b")).unwrap(), "one\nfree\n");
}

// S4-15
#[test]
fn killed_supervisor_blocks_all_further_changes() {
    let repo = TestRepository::new();
    let line = "echo $PPID; while [ ! -e ../go ]; do sleep 0.02; done; echo more >> a; echo $? > ../code";
    let mut child = repo
        .command(&["guard", "--", "sh", "-c", &format!("sh -c '{line}' & wait")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    let mut byte = [0];
    let output = child.stdout.as_mut().unwrap();
    while !text.ends_with('\n') {
        output.read_exact(&mut byte).unwrap();
        text.push(char::from(byte[0]));
    }
    let shell: u32 = text.trim().parse().unwrap();
    let status = fs::read_to_string(format!("/proc/{shell}/status")).unwrap();
    let supervisor: u32 =
        status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    signal(supervisor, "KILL");
    let result = CommandOutput::from_output(child.wait_with_output().unwrap());
    assert_eq!(result.code, Some(69), "{result:?}");
    fs::write(repo.path("go"), "").unwrap();
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "one\n");
}

// S4-15
#[test]
fn restarting_server_is_awaited_and_an_unstartable_one_denies() {
    let repo = TestRepository::new();
    let line =
        "echo more >> a || exit 1; touch ../first; while [ ! -e ../go ]; do sleep 0.02; done; echo more >> b";
    let child = repo
        .command(&["guard", "--", "sh", "-c", line])
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the first is written", || repo.path("first").exists());
    signal(repo.daemon_pid().unwrap(), "KILL");
    wait_until("it is gone", || repo.daemon_pid().is_none());
    fs::write(repo.path("go"), "").unwrap();
    let result = CommandOutput::from_output(child.wait_with_output().unwrap());
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
    signal(repo.daemon_pid().unwrap(), "KILL");
    wait_until("it is gone", || repo.daemon_pid().is_none());
    repo.configure("this is no configuration");
    let result = guarded(&repo, "echo more >> b");
    assert_ne!(result.code, Some(0), "{result:?}");
    assert!(result.errors.contains("tenure: ") && result.errors.contains("configuration"), "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("b")).unwrap(), "one\nmore\n");
}

// S4-20
#[test]
fn server_started_inside_a_guard_is_not_guarded() {
    let repo = TestRepository::new();
    let program = env!("CARGO_BIN_EXE_tenure");
    // A hook inside a guard is what starts the server here.
    let event = repo.event_payload("s1", "SessionStart").to_string();
    fs::write(repo.path("payload"), event).unwrap();
    let result = guarded(&repo, &format!("{program} hook claude < ../payload"));
    assert_eq!(result.code, Some(0), "{result:?}");
    let server = repo.daemon_pid().expect("it was started");
    let status = fs::read_to_string(format!("/proc/{server}/status")).unwrap();
    let filters = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).unwrap().trim().to_owned();
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let ours = own.lines().find_map(|line| line.strip_prefix("Seccomp:")).unwrap().trim().to_owned();
    assert_eq!(filters, ours, "as unwatched as this test");
}
