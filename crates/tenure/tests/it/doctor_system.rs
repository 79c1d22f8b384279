//! The doctor where the system is not as usual.

use std::fs;

use crate::doctor_stage::{doctor, installed, nothing_stays, read};
use crate::hook_stage::{Said, Stage};
use crate::wrapped::{Tracer, under};

#[test]
fn on_a_slow_disk_the_doctor_waits_until_its_sessions_are_gone() {
    let stage = installed(&["claude"]);
    assert_eq!(stage.run(&["doctor"]).code, Some(0));
    let daemon = stage.daemon().unwrap();
    let _tracer = Tracer::attach_to(daemon, "fdatasync:delay_enter=150000");
    let found = doctor(&stage);
    assert_eq!((found.1.code, found.gaps()), (Some(0), vec![]), "{:?}", found.1);
    nothing_stays(&stage);
}

/// Runs it where the system refuses that calls are watched, as some containers do.
fn refused(stage: &Stage, arguments: &[&str]) -> Said {
    let fault = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=seccomp", "-e", "inject=seccomp:error=EPERM"];
    Said::of(under("strace", &fault, &stage.command(arguments)).output().unwrap())
}

#[test]
fn where_calls_cannot_be_watched_no_shell_is_installed_and_the_doctor_says_why() {
    let stage = Stage::new();
    // The server is not traced: it would be waited for.
    stage.run(&["doctor"]);
    let said = refused(&stage, &["install", "claude"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.output.contains("does not let calls be watched (EPERM"), "{said:?}");
    let settings = fs::read_to_string(stage.repository(".claude/settings.json")).unwrap();
    assert!(settings.contains(" hook claude") && !settings.contains("tenure-bash"), "{settings}");
    let row = said.output.lines().find(|line| line.starts_with("shell commands ")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words.join(" "), "shell commands audit this system does not let calls be watched");
    let found = read(refused(&stage, &["doctor", "--json"]));
    assert_eq!(found.gaps(), ["claude.shell", "gate.kernel"], "{:?}", found.1);
    assert!(found.detail("gate.kernel").contains("EPERM"), "{:?}", found.1);
    assert!(
        found.find("claude.shell")["fix"].as_str().unwrap().starts_with("allow seccomp"),
        "{:?}",
        found.1
    );
    // It was installed where it worked, and the container came later.
    assert_eq!(stage.run(&["install", "claude"]).code, Some(0));
    assert_eq!(doctor(&stage).gaps(), Vec::<&str>::new());
    let found = read(refused(&stage, &["doctor", "--json"]));
    assert_eq!(found.gaps(), ["claude.shell", "gate.kernel"], "{:?}", found.1);
    assert!(found.detail("claude.shell").contains("none of them runs"), "{:?}", found.1);
    let fix = found.find("claude.shell")["fix"].as_str().unwrap();
    assert!(fix.contains("allow seccomp") && fix.contains("`tenure uninstall claude`"), "{fix}");
}

#[test]
fn inside_a_guard_the_shells_of_all_agents_are_covered() {
    let stage = installed(&["codex", "gemini"]);
    let found = read(stage.run(&["guard", "--", env!("CARGO_BIN_EXE_tenure"), "doctor", "--json"]));
    assert_eq!((found.status("codex.shell"), found.status("gemini.shell")), ("ok", "ok"), "{:?}", found.1);
    assert_eq!(doctor(&stage).gaps(), ["codex.shell", "gemini.shell"]);
}

#[test]
fn in_a_tree_where_git_ignores_everything_the_doctor_says_so() {
    let stage = installed(&["claude"]);
    fs::write(stage.repository(".gitignore"), "*\n").unwrap();
    let found = doctor(&stage);
    for name in ["claude.project.canary", "claude.shell", "gate.canary"] {
        assert_eq!(found.status(name), "unknown", "{name}");
        assert!(found.detail(name).contains("git ignores"), "{:?}", found.find(name));
    }
}

#[test]
fn who_has_no_home_is_told_what_to_set() {
    let stage = Stage::new();
    for command in ["doctor", "install claude"] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let said = Said::of(stage.command(&arguments).env_remove("HOME").output().unwrap());
        assert_eq!(said.code, Some(78), "{said:?}");
        assert!(said.errors.ends_with("set HOME\n") && !said.errors.contains("undo"), "{said:?}");
    }
}
