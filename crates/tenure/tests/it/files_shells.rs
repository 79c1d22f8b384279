//! In which shells the commands of agents may run.

use serde_json::{Value, json};
use tenure_testkit::{FakeAgent, Repository};

/// An agent is about to run a command.
fn command(repo: &Repository, session: &str) -> Value {
    json!({
        "hook_event_name": "PreToolUse", "session_id": session, "cwd": repo.file(""), "tool_name": "Bash",
        "tool_input": {"command": "echo more >> a"}, "tool_use_id": "call-1",
    })
}

// S4-15
#[test]
fn guarded_shells_setting_denies_unguarded_commands() {
    let repo = Repository::new();
    repo.configure("[files]\nshells = \"guarded\"\n");
    let mut codex = FakeAgent::of_kind(&repo, "one", "codex");
    let said = codex.hook(&command(&repo, "s1"));
    assert!(!said.allows() && said.reason().contains("`tenure guard -- codex`"), "{said:?}");
    assert!(codex.hook(&repo.patch("s1", "a")).allows(), "edits are leased as ever");
    let mut mixed = command(&repo, "s1");
    mixed["tool_input"]["command"] =
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** End Patch\nEOF\nrm b"
            .into();
    assert!(!codex.hook(&mixed).allows(), "a patch takes no other command along");
    std::fs::write(repo.path("payload"), command(&repo, "s1").to_string()).unwrap();
    let said = codex.run("\"$TENURE\" guard -- sh -c '\"$TENURE\" hook codex < ../payload'");
    assert!(said.allows(), "inside a guard everything asks: {said:?}");
}

// S4-62
#[test]
fn unguarded_commands_are_allowed_by_default() {
    let repo = Repository::new();
    let mut codex = FakeAgent::of_kind(&repo, "one", "codex");
    let said = codex.hook(&command(&repo, "s1"));
    assert_eq!((said.code, &*said.output, &*said.errors), (Some(0), "", ""), "{said:?}");
}

// S4-15
#[test]
fn missing_agent_shell_denies_commands() {
    let repo = Repository::new();
    let mut claude = FakeAgent::start(&repo, "one");
    std::fs::write(repo.path("payload"), command(&repo, "s1").to_string()).unwrap();
    let shell = repo.path("tenure-bash");
    let ask = format!("CLAUDE_CODE_SHELL={} \"$TENURE\" hook claude < ../payload", shell.display());
    let said = claude.run(&ask);
    assert!(!said.allows() && said.reason().contains("tenure install claude"), "{said:?}");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tenure"), &shell).unwrap();
    assert!(claude.run(&ask).allows());
}
