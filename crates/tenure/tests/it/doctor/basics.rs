//! What is not covered is found, and nothing of the looking stays.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use tenure_testkit::{CommandOutput, FakeAgent, TestRepository, signal, wait_until};

use crate::doctor::fixture::{
    PROGRAM, assert_clean, edit_settings, has_own_shell, install_shell, parse_checks, repository_with,
    run_doctor,
};

// S4-15
#[test]
fn doctor_finds_no_gap_and_leaves_no_trace_in_a_complete_installation() {
    let repo = repository_with(&["claude"]);
    install_shell(&repo);
    let found = run_doctor(&repo);
    assert_eq!((found.1.code, found.gaps()), (Some(0), vec![]), "{:?}", found.1);
    for name in [
        "tree",
        "server",
        "server.mode",
        "claude.project.hooks",
        "claude.project.canary",
        "claude.shell",
        "gate.kernel",
        "gate.ptrace",
        "gate.canary",
        "git.hooks",
        "audit.watches",
    ] {
        assert_eq!(found.status(name), "ok", "{name}: {:?}", found.1);
    }
    for name in ["claude.local.hooks", "claude.user.hooks", "codex.project.hooks", "opencode.user.hooks"] {
        assert_eq!(found.status(name), "not_installed", "{name}");
    }
    assert_clean(&repo);
    let output = repo.run(&["doctor"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.output.starts_with("CHECK") && output.output.ends_with("\nNo gap was found.\n"),
        "{output:?}"
    );
    assert_clean(&repo);
}

// S4-15, S4-16
#[test]
fn doctor_below_an_agent_or_inside_a_guard_has_its_own_canaries() {
    let repo = repository_with(&["claude"]);
    install_shell(&repo);
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    for line in ["\"$TENURE\" doctor --json", "\"$TENURE\" guard -- \"$TENURE\" doctor --json"] {
        let found = parse_checks(agent.run_line(line));
        assert_eq!(found.gaps(), Vec::<&str>::new(), "{line}: {:?}", found.1);
        assert_eq!(repo.held_files(), ["a"], "what the agent has it still has, and nothing more");
        let sessions = repo.shell("curl -s --unix-socket ../tenure/tenure.sock http://localhost/v1/files");
        assert!(!sessions.output.contains("tenure-doctor"), "{sessions:?}");
    }
}

// S4-15
#[test]
fn doctor_invokes_the_hooks_of_every_agent_in_its_own_format() {
    let repo = repository_with(&["codex", "gemini", "cursor", "opencode", "claude --user", "claude --local"]);
    let found = run_doctor(&repo);
    let has_node = repo.shell("node --version").code == Some(0);
    for agent in ["codex.project", "gemini.project", "cursor.project", "claude.user", "claude.local"] {
        for what in ["hooks", "canary"] {
            let name = format!("{agent}.{what}");
            assert_eq!(found.status(&name), "ok", "{name}: {:?}", found.1);
        }
    }
    assert_eq!(
        found.status("opencode.project.canary"),
        if has_node { "ok" } else { "unknown" },
        "{:?}",
        found.1
    );
    // Nobody can say here whether Codex would run them; and nothing covers the shells of these.
    assert_eq!(found.status("codex.trust"), "unknown");
    for agent in ["codex", "gemini", "cursor"] {
        assert_eq!(found.status(&format!("{agent}.shell")), "gap");
    }
    assert!(found.detail("codex.shell").contains("audit only"), "{:?}", found.1);
    assert_eq!(found.find("cursor.shell")["fix"], "tenure guard -- cursor-agent");
    assert_clean(&repo);
}

#[test]
fn missing_program_is_a_gap_with_the_message_of_the_shell() {
    let repo = repository_with(&["claude"]);
    let path = repo.file(".claude/settings.json");
    let text = fs::read_to_string(&path).unwrap().replace(PROGRAM, "/gone/tenure");
    fs::write(&path, text).unwrap();
    let found = run_doctor(&repo);
    assert_eq!(found.1.code, Some(1));
    assert!(found.detail("claude.project.hooks").contains("/gone/tenure, which is gone"), "{:?}", found.1);
    assert_eq!(found.find("claude.project.hooks")["fix"], "tenure install claude");
    let detail = found.detail("claude.project.canary");
    assert!(found.status("claude.project.canary") == "gap" && detail.contains("not found"), "{detail}");
}

// S4-15
#[test]
fn hook_that_allows_without_asking_the_server_is_a_gap() {
    let repo = repository_with(&["claude"]);
    let liar = repo.path("bin/tenure");
    fs::create_dir(repo.path("bin")).unwrap();
    fs::write(&liar, "#!/bin/sh\ncat > /dev/null\nexit 0\n").unwrap();
    fs::set_permissions(&liar, fs::Permissions::from_mode(0o755)).unwrap();
    let path = repo.file(".claude/settings.json");
    let text = fs::read_to_string(&path).unwrap().replace(PROGRAM, liar.to_str().unwrap());
    fs::write(&path, text).unwrap();
    let found = run_doctor(&repo);
    assert!(found.detail("claude.project.hooks").contains("another program"), "{:?}", found.1);
    assert_eq!(found.status("claude.project.canary"), "gap");
    assert!(found.detail("claude.project.canary").contains("the server was not asked"), "{:?}", found.1);
}

#[test]
fn disabled_or_incomplete_hooks_are_gaps() {
    let repo = repository_with(&["claude"]);
    install_shell(&repo);
    let home = repo.path(".claude/settings.json");
    edit_settings(&home, |settings| settings["disableAllHooks"] = json!(true));
    let found = run_doctor(&repo);
    assert_eq!(found.gaps(), ["claude.project.hooks"], "{:?}", found.1);
    assert!(found.detail("claude.project.hooks").contains("disableAllHooks"), "{:?}", found.1);
    // The project says otherwise, and is nearer.
    let project = repo.file(".claude/settings.json");
    edit_settings(&project, |settings| settings["disableAllHooks"] = json!(false));
    assert_eq!(run_doctor(&repo).gaps(), Vec::<&str>::new());
    edit_settings(&project, |settings| drop(settings["hooks"].as_object_mut().unwrap().remove("SessionEnd")));
    let found = run_doctor(&repo);
    assert_eq!(found.gaps(), ["claude.project.hooks", "claude.project.canary"], "{:?}", found.1);
    assert!(found.detail("claude.project.canary").contains("SessionEnd"), "{:?}", found.1);
    assert_clean(&repo);
}

#[test]
fn git_hooks_that_git_does_not_run_are_a_gap() {
    let repo = repository_with(&["claude"]);
    install_shell(&repo);
    let hook = repo.file(".git/hooks/post-commit");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o644)).unwrap();
    let found = run_doctor(&repo);
    // Root may execute nothing that nobody may.
    assert_eq!(found.gaps(), ["git.hooks"], "{:?}", found.1);
    assert!(found.find("git.hooks")["fix"].as_str().unwrap().starts_with("chmod +x "), "{:?}", found.1);
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(repo.shell("git config core.hooksPath .husky").code, Some(0));
    let found = run_doctor(&repo);
    assert_eq!(found.gaps(), ["git.hooks"], "{:?}", found.1);
    assert!(found.detail("git.hooks").contains("core.hooksPath"), "{:?}", found.1);
    assert_eq!(repo.run(&["install", "git"]).code, Some(0));
    assert_eq!(run_doctor(&repo).gaps(), Vec::<&str>::new());
}

// S4-15
#[test]
fn server_in_warn_mode_is_a_gap() {
    let repo = repository_with(&["claude"]);
    install_shell(&repo);
    repo.configure("[files]\nmode = \"warn\"\n");
    let found = run_doctor(&repo);
    assert_eq!((found.1.code, found.gaps()), (Some(1), vec!["server.mode"]), "{:?}", found.1);
    assert_clean(&repo);
}

#[test]
fn server_that_does_not_start_is_a_gap_and_canaries_are_skipped() {
    let repo = repository_with(&["claude"]);
    repo.configure("[files]\nmode = \"sometimes\"\n");
    let found = run_doctor(&repo);
    assert_eq!(found.status("server"), "gap");
    assert!(found.detail("server").contains("files.mode"), "{:?}", found.1);
    assert_eq!(found.status("claude.project.canary"), "unknown", "{:?}", found.1);
    assert_eq!(found.status("gate.canary"), "unknown", "{:?}", found.1);
}

#[test]
fn foreign_shell_is_a_gap() {
    let repo = repository_with(&["claude"]);
    assert_eq!(run_doctor(&repo).status("claude.shell"), if has_own_shell(&repo) { "ok" } else { "gap" });
    edit_settings(&repo.file(".claude/settings.local.json"), |settings| {
        settings["env"] = json!({"CLAUDE_CODE_SHELL": "/bin/bash"});
    });
    let found = run_doctor(&repo);
    assert_eq!(found.status("claude.shell"), "gap");
    assert!(found.detail("claude.shell").contains("settings.local.json"), "{:?}", found.1);
    assert_eq!(found.find("claude.shell")["fix"], "tenure guard -- claude");
    assert_clean(&repo);
}

#[test]
fn doctor_outside_of_a_work_tree_checks_only_the_machine() {
    let repo = repository_with(&["claude --user"]);
    let result = CommandOutput::from_output(
        repo.command(&["doctor", "--json"]).current_dir(repo.path("")).output().unwrap(),
    );
    let found = parse_checks(result);
    assert_eq!(found.status("tree"), "unknown");
    assert_eq!((found.status("server"), found.status("gate.kernel")), ("ok", "ok"));
    assert_eq!(found.status("claude.user.hooks"), "ok", "{:?}", found.1);
    assert_eq!(found.status("claude.user.canary"), "unknown");
    assert!(
        !found.0.iter().any(|check| check["name"].as_str().unwrap().contains("project")),
        "{:?}",
        found.1
    );
}

/// A `codex` that lists this, whatever it is asked.
fn codex(repo: &TestRepository, trust: &str) {
    let settings = fs::read_to_string(repo.file(".codex/hooks.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let command = &settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
    let hook = json!({"eventName": "preToolUse", "command": command, "trustStatus": trust});
    let list = json!({"id": 2, "result": {"data": [{"cwd": "/", "hooks": [hook]}]}});
    fs::create_dir_all(repo.path("bin")).unwrap();
    fs::write(repo.path("bin/list"), format!("{list}\n")).unwrap();
    let script = "#!/bin/sh\nread -r line\necho '{\"id\":1,\"result\":{}}'\nread -r line\nread -r line\n\
                  case $line in *hooks/list*repository*) cat \"${0%/*}/list\";; esac\nexec sleep 600\n";
    fs::write(repo.path("bin/codex"), script).unwrap();
    fs::set_permissions(repo.path("bin/codex"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn trust_is_read_from_codex_itself() {
    let repo = repository_with(&["codex"]);
    let path = format!("{}:/usr/bin:/bin", repo.path("bin").display());
    let ask = || {
        let mut command = repo.command(&["doctor", "--json"]);
        parse_checks(CommandOutput::from_output(command.env("PATH", &path).output().unwrap()))
    };
    codex(&repo, "trusted");
    assert_eq!(ask().status("codex.trust"), "ok");
    codex(&repo, "untrusted");
    let found = ask();
    assert_eq!(found.status("codex.trust"), "gap", "{:?}", found.1);
    assert!(found.find("codex.trust")["fix"].as_str().unwrap().contains("/hooks"), "{:?}", found.1);
}

// S4-20
#[test]
fn killed_doctor_leaves_no_lease() {
    let repo = repository_with(&["claude"]);
    // A hook that has got its lease, and then never ends.
    let slow = repo.path("bin/tenure");
    fs::create_dir(repo.path("bin")).unwrap();
    fs::write(&slow, format!("#!/bin/sh\n{PROGRAM} \"$@\"\ntouch ../waiting\nexec sleep 20\n")).unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let path = repo.file(".claude/settings.json");
    let text = fs::read_to_string(&path).unwrap().replace(PROGRAM, slow.to_str().unwrap());
    fs::write(&path, text).unwrap();
    for name in ["KILL", "TERM"] {
        let mut doctor = repo.command(&["doctor"]).spawn().unwrap();
        wait_until("a canary is held", || repo.path("waiting").exists());
        wait_until("and nothing else", || repo.held_files().len() == 1);
        signal(doctor.id(), name);
        doctor.wait().unwrap();
        wait_until("it is let go of", || repo.held_files().is_empty());
        assert_clean(&repo);
        fs::remove_file(repo.path("waiting")).unwrap();
    }
}
