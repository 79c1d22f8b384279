//! A guard on a terminal: a job that stops, goes on and ends as the command does without it.

use std::fs;

use tenure_testkit::{FakeAgent, Repository, signal, wait_until};

use crate::terminals::Screen;

/// An interactive shell of somebody who works in the repository.
fn shell(repo: &Repository) -> Screen {
    show(repo, "bash --norc --noprofile -i")
}

fn show(repo: &Repository, line: &str) -> Screen {
    Screen::beside(&repo.command(&[]), &repo.file(""), repo.path("screen"), line)
}

#[test]
fn suspended_guard_returns_to_the_shell_and_fg_resumes_it() {
    let repo = Repository::new();
    let mut screen = shell(&repo);
    screen.type_in("\"$TENURE\" guard -- bash --norc --noprofile -i\n");
    screen.type_in("echo in\"\"side\n");
    screen.wait_for("inside");
    screen.type_in("suspend\n");
    screen.wait_for("Stopped");
    screen.type_in("echo out\"\"side\n");
    screen.wait_for("outside");
    screen.type_in("fg\n");
    screen.type_in("echo inside ag\"\"ain; exit 3\n");
    screen.wait_for("inside again");
    screen.type_in("exit $?\n");
    assert_eq!(screen.end(), Some(3), "{}", screen.text());
}

#[test]
fn ctrl_z_and_background_reads_stop_the_job() {
    let repo = Repository::new();
    let mut screen = shell(&repo);
    let line = "echo beg\"\"un; until [ \"$a\" = end ]; do read a; echo got $a; done";
    screen.type_in(&format!("\"$TENURE\" guard -- sh -c '{line}'\n"));
    screen.wait_for("begun");
    for (times, word) in [(1, "once"), (2, "end")] {
        screen.type_in("\x1a");
        wait_until("it is stopped", || screen.text().matches("Stopped").count() == times);
        screen.type_in("fg\n");
        screen.type_in(&format!("{word}\n"));
        // It has the terminal again.
        screen.wait_for(&format!("got {word}"));
    }
    screen.type_in("\"$TENURE\" guard -- sh -c 'read a; echo got $a' &\n");
    wait_until("it is stopped for reading", || {
        screen.type_in("jobs\n");
        screen.text().matches("Stopped").count() > 2
    });
    screen.type_in("fg\n");
    screen.type_in("more\n");
    screen.wait_for("got more");
    screen.type_in("exit 0\n");
    assert_eq!(screen.end(), Some(0), "{}", screen.text());
}

#[test]
fn ctrl_z_without_a_job_control_shell_stops_nothing() {
    let repo = Repository::new();
    let mut screen = show(&repo, "exec \"$TENURE\" guard -- sh -c 'echo begun; read a; echo got $a'");
    screen.wait_for("begun");
    screen.type_in("\x1a");
    screen.type_in("input\n");
    screen.wait_for("got input");
    assert_eq!(screen.end(), Some(0), "{}", screen.text());
}

#[test]
fn ctrl_c_ends_a_loop_of_guards() {
    let repo = Repository::new();
    let mut screen = shell(&repo);
    let line = "for i in 1 2 3; do \"$TENURE\" guard -- sh -c 'echo beg\"\"un; exec sleep 60'; done\n";
    screen.type_in(line);
    screen.wait_for("begun");
    screen.type_in("\x03");
    screen.type_in("echo at the pro\"\"mpt\n");
    screen.wait_for("at the prompt");
    assert_eq!(screen.text().matches("begun").count(), 1, "{}", screen.text());
    screen.type_in("exit 0\n");
    assert_eq!(screen.end(), Some(0), "{}", screen.text());
}

#[test]
fn signals_of_processes_and_of_the_terminal_reach_the_command_once() {
    let repo = Repository::new();
    let script = r#"trap "echo caught >> ../caught" INT; trap "exit 9" QUIT
        echo $PPID > ../keeper; while :; do sleep 0.02; done"#;
    fs::write(repo.path("script.sh"), script).unwrap();
    let mut screen = show(&repo, "exec \"$TENURE\" guard -- sh ../script.sh");
    let read = |name: &str| fs::read_to_string(repo.path(name)).unwrap_or_default();
    wait_until("it has begun", || read("keeper").ends_with('\n'));
    let status = fs::read_to_string(format!("/proc/{}/status", read("keeper").trim())).unwrap();
    let front = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    signal(front, "INT");
    wait_until("it is told", || read("caught") == "caught\n");
    screen.type_in("\x03");
    wait_until("it is told again", || read("caught") == "caught\ncaught\n");
    // Whatever would come twice has come before this.
    signal(front, "QUIT");
    assert_eq!(screen.end(), Some(9), "{}", screen.text());
    assert_eq!(read("caught"), "caught\ncaught\n");
}

#[test]
fn denial_is_printed_on_a_terminal_with_tostop() {
    let repo = Repository::new();
    let mut owner = FakeAgent::start(&repo, "owner");
    assert!(owner.hook(&repo.edit("s1", "a")).allows());
    let mut screen = show(&repo, "stty tostop; \"$TENURE\" guard -- sh -c 'echo more >> a'");
    screen.wait_for("`a` was not changed");
    assert_eq!(screen.end(), Some(2), "{}", screen.text());
}
