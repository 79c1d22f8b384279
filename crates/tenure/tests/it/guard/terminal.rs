//! A guard on a terminal: a job that stops, goes on and ends as the command does without it.

use std::fs;

use tenure_testkit::{FakeAgent, TestRepository, signal, wait_until};

use crate::run::terminal::TestTerminal;

/// An interactive shell of somebody who works in the repository.
fn shell(repo: &TestRepository) -> TestTerminal {
    show(repo, "bash --norc --noprofile -i")
}

fn show(repo: &TestRepository, line: &str) -> TestTerminal {
    TestTerminal::start_in(&repo.command(&[]), &repo.file(""), repo.path("screen"), line)
}

#[test]
fn suspended_guard_returns_to_the_shell_and_fg_resumes_it() {
    let repo = TestRepository::new();
    let mut screen = shell(&repo);
    screen.type_keys("\"$TENURE\" guard -- bash --norc --noprofile -i\n");
    screen.type_keys("echo in\"\"side\n");
    screen.wait_for("inside");
    screen.type_keys("suspend\n");
    screen.wait_for("Stopped");
    screen.type_keys("echo out\"\"side\n");
    screen.wait_for("outside");
    screen.type_keys("fg\n");
    screen.type_keys("echo inside ag\"\"ain; exit 3\n");
    screen.wait_for("inside again");
    screen.type_keys("exit $?\n");
    assert_eq!(screen.wait(), Some(3), "{}", screen.text());
}

#[test]
fn ctrl_z_and_background_reads_stop_the_job() {
    let repo = TestRepository::new();
    let mut screen = shell(&repo);
    let line = "echo beg\"\"un; until [ \"$a\" = end ]; do read a; echo got $a; done";
    screen.type_keys(&format!("\"$TENURE\" guard -- sh -c '{line}'\n"));
    screen.wait_for("begun");
    for (times, word) in [(1, "once"), (2, "end")] {
        screen.type_keys("\x1a");
        wait_until("it is stopped", || screen.text().matches("Stopped").count() == times);
        screen.type_keys("fg\n");
        screen.type_keys(&format!("{word}\n"));
        // It has the terminal again.
        screen.wait_for(&format!("got {word}"));
    }
    screen.type_keys("\"$TENURE\" guard -- sh -c 'read a; echo got $a' &\n");
    wait_until("it is stopped for reading", || {
        screen.type_keys("jobs\n");
        screen.text().matches("Stopped").count() > 2
    });
    screen.type_keys("fg\n");
    screen.type_keys("more\n");
    screen.wait_for("got more");
    screen.type_keys("exit 0\n");
    assert_eq!(screen.wait(), Some(0), "{}", screen.text());
}

#[test]
fn ctrl_z_without_a_job_control_shell_stops_nothing() {
    let repo = TestRepository::new();
    let mut screen = show(&repo, "exec \"$TENURE\" guard -- sh -c 'echo begun; read a; echo got $a'");
    screen.wait_for("begun");
    screen.type_keys("\x1a");
    screen.type_keys("input\n");
    screen.wait_for("got input");
    assert_eq!(screen.wait(), Some(0), "{}", screen.text());
}

#[test]
fn ctrl_c_ends_a_loop_of_guards() {
    let repo = TestRepository::new();
    let mut screen = shell(&repo);
    let line = "for i in 1 2 3; do \"$TENURE\" guard -- sh -c 'echo beg\"\"un; exec sleep 60'; done\n";
    screen.type_keys(line);
    screen.wait_for("begun");
    screen.type_keys("\x03");
    screen.type_keys("echo at the pro\"\"mpt\n");
    screen.wait_for("at the prompt");
    assert_eq!(screen.text().matches("begun").count(), 1, "{}", screen.text());
    screen.type_keys("exit 0\n");
    assert_eq!(screen.wait(), Some(0), "{}", screen.text());
}

#[test]
fn signals_of_processes_and_of_the_terminal_reach_the_command_once() {
    let repo = TestRepository::new();
    let script = r#"trap "echo caught >> ../caught" INT; trap "exit 9" QUIT
        echo $PPID > ../keeper; while :; do sleep 0.02; done"#;
    fs::write(repo.path("script.sh"), script).unwrap();
    let mut screen = show(&repo, "exec \"$TENURE\" guard -- sh ../script.sh");
    let read = |name: &str| fs::read_to_string(repo.path(name)).unwrap_or_default();
    wait_until("it has begun", || read("keeper").ends_with('\n'));
    let status = fs::read_to_string(format!("/proc/{}/status", read("keeper").trim())).unwrap();
    let launcher =
        status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    signal(launcher, "INT");
    wait_until("it is told", || read("caught") == "caught\n");
    screen.type_keys("\x03");
    wait_until("it is told again", || read("caught") == "caught\ncaught\n");
    // Whatever would come twice has come before this.
    signal(launcher, "QUIT");
    assert_eq!(screen.wait(), Some(9), "{}", screen.text());
    assert_eq!(read("caught"), "caught\ncaught\n");
}

#[test]
fn denial_is_printed_on_a_terminal_with_tostop() {
    let repo = TestRepository::new();
    let mut owner = FakeAgent::start(&repo, "owner");
    assert!(owner.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let mut screen = show(&repo, "stty tostop; \"$TENURE\" guard -- sh -c 'echo more >> a'");
    screen.wait_for("`a` was not changed");
    assert_eq!(screen.wait(), Some(2), "{}", screen.text());
}
