//! In which shells the commands of agents may run.

use serde_json::{Value, json};
use tenure_testkit::{FakeAgent, TestRepository};

/// An agent is about to run a command.
fn command(repo: &TestRepository, session: &str) -> Value {
    json!({
        "hook_event_name": "PreToolUse", "session_id": session, "cwd": repo.file(""), "tool_name": "Bash",
        "tool_input": {"command": "echo more >> a"}, "tool_use_id": "call-1",
    })
}

// S4-15
#[test]
fn guarded_shells_setting_denies_unguarded_commands() {
    let repo = TestRepository::new();
    repo.configure("[files]\nshells = \"guarded\"\n");
    let mut codex = FakeAgent::start_kind(&repo, "one", "codex");
    let result = codex.run_hook(&command(&repo, "s1"));
    assert!(!result.is_allowed() && result.denial_reason().contains("`tenure guard -- codex`"), "{result:?}");
    assert!(codex.run_hook(&repo.patch_payload("s1", "a")).is_allowed(), "edits are leased as ever");
    let mut mixed = command(&repo, "s1");
    mixed["tool_input"]["command"] =
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** End Patch\nEOF\nrm b"
            .into();
    assert!(!codex.run_hook(&mixed).is_allowed(), "a patch takes no other command along");
    std::fs::write(repo.path("payload"), command(&repo, "s1").to_string()).unwrap();
    let result = codex.run_line("\"$TENURE\" guard -- sh -c '\"$TENURE\" hook codex < ../payload'");
    assert!(result.is_allowed(), "inside a guard everything asks: {result:?}");
}

// S4-62
#[test]
fn unguarded_commands_are_allowed_by_default() {
    let repo = TestRepository::new();
    let mut codex = FakeAgent::start_kind(&repo, "one", "codex");
    let result = codex.run_hook(&command(&repo, "s1"));
    assert_eq!((result.code, &*result.output, &*result.errors), (Some(0), "", ""), "{result:?}");
}

// S4-15
#[test]
fn missing_agent_shell_denies_commands() {
    let repo = TestRepository::new();
    let mut claude = FakeAgent::start(&repo, "one");
    std::fs::write(repo.path("payload"), command(&repo, "s1").to_string()).unwrap();
    let shell = repo.path("tenure-bash");
    let ask = format!("CLAUDE_CODE_SHELL={} \"$TENURE\" hook claude < ../payload", shell.display());
    let result = claude.run_line(&ask);
    assert!(!result.is_allowed() && result.denial_reason().contains("tenure install claude"), "{result:?}");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tenure"), &shell).unwrap();
    assert!(claude.run_line(&ask).is_allowed());
}
