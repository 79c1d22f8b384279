//! The doctor where the system is not as usual.

use std::fs;

use tenure_testkit::{CommandOutput, TestRepository};

use crate::doctor::fixture::{assert_clean, parse_checks, repository_with, run_doctor};
use crate::fault_injection::{Tracer, wrapped_command};

#[test]
fn doctor_on_a_slow_disk_returns_after_its_sessions_ended() {
    let repo = repository_with(&["claude"]);
    assert_eq!(repo.run(&["doctor"]).code, Some(0));
    let daemon = repo.daemon_pid().unwrap();
    let _tracer = Tracer::attach_to(daemon, "fdatasync:delay_enter=150000");
    let found = run_doctor(&repo);
    assert_eq!((found.1.code, found.gaps()), (Some(0), vec![]), "{:?}", found.1);
    assert_clean(&repo);
}

/// Runs it where the system refuses that calls are watched, as some containers do.
fn refused(repo: &TestRepository, arguments: &[&str]) -> CommandOutput {
    let fault = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=seccomp", "-e", "inject=seccomp:error=EPERM"];
    CommandOutput::from_output(wrapped_command("strace", &fault, &repo.command(arguments)).output().unwrap())
}

#[test]
fn without_seccomp_no_shell_is_installed_and_the_doctor_reports_why() {
    let repo = TestRepository::new();
    // The server is not traced: it would be waited for.
    repo.run(&["doctor"]);
    let result = refused(&repo, &["install", "claude"]);
    assert_eq!(result.code, Some(0), "{result:?}");
    assert!(result.output.contains("does not let calls be watched (EPERM"), "{result:?}");
    let settings = fs::read_to_string(repo.file(".claude/settings.json")).unwrap();
    assert!(settings.contains(" hook claude") && !settings.contains("tenure-bash"), "{settings}");
    let row = result.output.lines().find(|line| line.starts_with("shell commands ")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words.join(" "), "shell commands audit this system does not let calls be watched");
    let found = parse_checks(refused(&repo, &["doctor", "--json"]));
    assert_eq!(found.gaps(), ["claude.shell", "gate.kernel"], "{:?}", found.1);
    assert!(found.detail("gate.kernel").contains("EPERM"), "{:?}", found.1);
    assert!(
        found.find("claude.shell")["fix"].as_str().unwrap().starts_with("allow seccomp"),
        "{:?}",
        found.1
    );
    // It was installed where it worked, and the container came later.
    assert_eq!(repo.run(&["install", "claude"]).code, Some(0));
    assert_eq!(run_doctor(&repo).gaps(), Vec::<&str>::new());
    let found = parse_checks(refused(&repo, &["doctor", "--json"]));
    assert_eq!(found.gaps(), ["claude.shell", "gate.kernel"], "{:?}", found.1);
    assert!(found.detail("claude.shell").contains("none of them runs"), "{:?}", found.1);
    let fix = found.find("claude.shell")["fix"].as_str().unwrap();
    assert!(fix.contains("allow seccomp") && fix.contains("`tenure uninstall claude`"), "{fix}");
}

#[test]
fn doctor_inside_a_guard_reports_all_shells_as_covered() {
    let repo = repository_with(&["codex", "gemini"]);
    let found = parse_checks(repo.run(&["guard", "--", env!("CARGO_BIN_EXE_tenure"), "doctor", "--json"]));
    assert_eq!((found.status("codex.shell"), found.status("gemini.shell")), ("ok", "ok"), "{:?}", found.1);
    assert_eq!(run_doctor(&repo).gaps(), ["codex.shell", "gemini.shell"]);
}

#[test]
fn doctor_reports_a_tree_in_which_git_ignores_every_canary() {
    let repo = repository_with(&["claude"]);
    fs::write(repo.file(".gitignore"), "*\n").unwrap();
    let found = run_doctor(&repo);
    for name in ["claude.project.canary", "claude.shell", "gate.canary"] {
        assert_eq!(found.status(name), "unknown", "{name}");
        assert!(found.detail(name).contains("git ignores"), "{:?}", found.find(name));
    }
}

#[test]
fn missing_home_is_a_configuration_error() {
    let repo = TestRepository::new();
    for command in ["doctor", "install claude"] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let result =
            CommandOutput::from_output(repo.command(&arguments).env_remove("HOME").output().unwrap());
        assert_eq!(result.code, Some(78), "{result:?}");
        assert!(result.errors.ends_with("set HOME\n") && !result.errors.contains("undo"), "{result:?}");
    }
}
