//! Payloads as the agents themselves sent them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tenure_gate::agent::Agent;
use tenure_gate::hooks::{Event, Heard, Patience, Subagent, Wrong, read};

use super::{SESSION, heard, paths, writing, writing_whole, wrote};

const TOOL_USE: &str = "toolu_00000000000000000001";
const CALL: &str = "call_00000000000000000001";
const CODE_MODE_CALL: &str = "exec-00000000-0000-4000-8000-000000000003";
const OPENCODE_SESSION: &str = "ses_00000000000000000000000001";
const PROMPT: &str = "Please follow the script.";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks")
}

fn event(event: Event) -> Heard {
    Heard { event, ..heard() }
}

fn prompted() -> Heard {
    Heard { event: Event::Prompted, task: Some(PROMPT.to_owned()), ..heard() }
}

fn ended(reason: &str) -> Heard {
    event(Event::Ended { reason: reason.to_owned() })
}

fn turn_ended(still_working: bool) -> Heard {
    event(Event::TurnEnded { still_working })
}

fn called(tool: &str, call: Option<&str>, event: Event) -> Heard {
    Heard { event, tool: Some(tool.to_owned()), call: call.map(str::to_owned), ..heard() }
}

fn claude(tool: &str, event: Event) -> Heard {
    called(tool, Some(TOOL_USE), event)
}

fn codex(tool: &str, event: Event) -> Heard {
    called(tool, Some(CALL), event)
}

fn opencode(tool: &str, event: Event) -> Heard {
    Heard { session: OPENCODE_SESSION.to_owned(), ..called(tool, Some(CALL), event) }
}

/// What comes after a call says nothing of the folder.
fn opencode_after(tool: &str, event: Event) -> Heard {
    Heard { cwd: None, ..opencode(tool, event) }
}

fn in_sub(heard: Heard) -> Heard {
    Heard { cwd: Some("/repo/sub".into()), ..heard }
}

fn by_subagent(heard: Heard) -> Heard {
    let kind = Some("general-purpose".to_owned());
    Heard { subagent: Some(Subagent { id: "a0000000000000001".to_owned(), kind, parent: None }), ..heard }
}

fn in_code_mode(heard: Heard) -> Heard {
    Heard { call: Some(CODE_MODE_CALL.to_owned()), patience: Patience::Brief, ..heard }
}

fn read_file(name: &str) -> Event {
    Event::Read { paths: paths(&[name]) }
}

fn claudes() -> Vec<(&'static str, Heard)> {
    let a = &["/repo/a.txt"];
    let rel = &["/repo/sub/rel.txt"];
    vec![
        ("PreToolUse-Bash", claude("Bash", Event::Calling)),
        ("PreToolUse-Bash-after-cd", claude("Bash", Event::Calling)),
        ("PreToolUse-Bash-after-cd-2", in_sub(claude("Bash", Event::Calling))),
        ("PreToolUse-Bash-subagent", by_subagent(claude("Bash", Event::Calling))),
        ("PreToolUse-Edit", claude("Edit", writing(a))),
        ("PreToolUse-Edit-after-cd", in_sub(claude("Edit", writing(a)))),
        ("PreToolUse-Edit-subagent", by_subagent(claude("Edit", writing(a)))),
        ("PreToolUse-Read", claude("Read", Event::Calling)),
        ("PreToolUse-Read-after-cd", in_sub(claude("Read", Event::Calling))),
        ("PreToolUse-Read-subagent", by_subagent(claude("Read", Event::Calling))),
        ("PreToolUse-Write", claude("Write", writing_whole(&["/repo/c.txt"]))),
        ("PreToolUse-Write-after-cd", in_sub(claude("Write", writing_whole(rel)))),
        ("PostToolUse-Bash", claude("Bash", Event::Other)),
        ("PostToolUse-Bash-after-cd", in_sub(claude("Bash", Event::Other))),
        ("PostToolUse-Bash-subagent", by_subagent(claude("Bash", Event::Other))),
        ("PostToolUse-Edit", claude("Edit", wrote(a))),
        ("PostToolUse-Edit-after-cd", in_sub(claude("Edit", wrote(a)))),
        ("PostToolUse-Edit-subagent", by_subagent(claude("Edit", wrote(a)))),
        ("PostToolUse-Read", claude("Read", read_file("/repo/a.txt"))),
        ("PostToolUse-Read-after-cd", in_sub(claude("Read", read_file("/repo/a.txt")))),
        ("PostToolUse-Read-subagent", by_subagent(claude("Read", read_file("/repo/a.txt")))),
        ("PostToolUse-Write", claude("Write", wrote(&["/repo/c.txt"]))),
        ("PostToolUse-Write-after-cd", in_sub(claude("Write", wrote(rel)))),
        ("PostToolUseFailure-Bash", claude("Bash", Event::Other)),
        ("SessionStart", event(Event::Started)),
        ("SessionEnd", ended("other")),
        ("Stop", turn_ended(false)),
        ("Stop-subagent", turn_ended(true)),
        ("Stop-subagent-2", turn_ended(false)),
        (
            "SubagentStart-subagent",
            Heard { task: Some("general-purpose".to_owned()), ..by_subagent(event(Event::SubagentStarted)) },
        ),
        ("SubagentStop-subagent", by_subagent(event(Event::SubagentEnded))),
        ("UserPromptSubmit", prompted()),
        ("UserPromptSubmit-subagent", prompted()),
        // Claude tells itself that a task is done: nobody asked for anything new.
        ("UserPromptSubmit-subagent-2", event(Event::Prompted)),
    ]
}

fn codexes() -> Vec<(&'static str, Heard)> {
    let many = &["a.txt", "new/d.txt", "b.txt", "moved/b2.txt", "README.md"];
    vec![
        ("PreToolUse-Bash", codex("Bash", Event::Calling)),
        ("PreToolUse-Bash-add", codex("Bash", Event::Calling)),
        ("PreToolUse-Bash-multi", codex("Bash", writing_whole(&["e.txt"]))),
        ("PreToolUse-Bash-workdir", codex("Bash", Event::Calling)),
        ("PreToolUse-Bash-workdir-2", in_sub(codex("Bash", Event::Calling))),
        ("PreToolUse-Bash-workdir-3", codex("Bash", writing_whole(&["sub/f.txt"]))),
        ("PreToolUse-Bash-workdir-4", codex("Bash", Event::Calling)),
        ("PreToolUse-apply_patch", codex("apply_patch", writing(&["a.txt"]))),
        ("PreToolUse-apply_patch-add", codex("apply_patch", writing_whole(&["c.txt"]))),
        ("PreToolUse-apply_patch-add-2", codex("apply_patch", writing(&["a.txt"]))),
        ("PreToolUse-apply_patch-multi", codex("apply_patch", writing(many))),
        ("PostToolUse-Bash", codex("Bash", Event::Other)),
        ("PostToolUse-Bash-add", codex("Bash", Event::Other)),
        ("PostToolUse-Bash-workdir", codex("Bash", Event::Other)),
        ("PostToolUse-apply_patch", codex("apply_patch", wrote(&["a.txt"]))),
        ("PostToolUse-apply_patch-add", codex("apply_patch", wrote(&["c.txt"]))),
        ("PostToolUse-apply_patch-multi", codex("apply_patch", wrote(many))),
        ("SessionStart", event(Event::Started)),
        ("SessionEnd", ended("other")),
        ("Stop", turn_ended(false)),
        ("UserPromptSubmit", prompted()),
        ("codemode-PreToolUse-Bash", in_code_mode(codex("Bash", Event::Calling))),
        ("codemode-PreToolUse-apply_patch", in_code_mode(codex("apply_patch", writing(&["a.txt"])))),
        ("codemode-PostToolUse-Bash", in_code_mode(codex("Bash", Event::Other))),
        ("codemode-PostToolUse-apply_patch", in_code_mode(codex("apply_patch", wrote(&["a.txt"])))),
        ("codemode-SessionStart", event(Event::Started)),
        ("codemode-SessionEnd", ended("other")),
        ("codemode-Stop", turn_ended(false)),
        ("codemode-UserPromptSubmit", prompted()),
    ]
}

fn geminis() -> Vec<(&'static str, Heard)> {
    let shell = || called("run_shell_command", None, Event::Other);
    let before = || called("run_shell_command", None, Event::Calling);
    vec![
        ("BeforeTool-replace", called("replace", None, writing(&["/repo/a.txt"]))),
        ("BeforeTool-write_file", called("write_file", None, writing_whole(&["/repo/c.txt"]))),
        ("BeforeTool-write_file-relative", called("write_file", None, writing_whole(&["rel.txt"]))),
        ("BeforeTool-read_file", called("read_file", None, Event::Calling)),
        ("BeforeTool-run_shell_command", before()),
        ("BeforeTool-run_shell_command-relative", before()),
        ("AfterTool-replace", called("replace", None, wrote(&["/repo/a.txt"]))),
        ("AfterTool-write_file", called("write_file", None, wrote(&["/repo/c.txt"]))),
        ("AfterTool-write_file-relative", called("write_file", None, wrote(&["rel.txt"]))),
        ("AfterTool-read_file", called("read_file", None, read_file("/repo/a.txt"))),
        ("AfterTool-run_shell_command", shell()),
        ("AfterTool-run_shell_command-relative", shell()),
        ("BeforeAgent", prompted()),
        ("AfterAgent", turn_ended(false)),
        ("SessionStart", event(Event::Started)),
        ("SessionEnd", ended("exit")),
    ]
}

fn opencodes() -> Vec<(&'static str, Heard)> {
    let said = |event| Heard { session: OPENCODE_SESSION.to_owned(), cwd: None, event, ..heard() };
    let idle = || said(Event::TurnEnded { still_working: false });
    vec![
        ("tool.execute.before-edit", opencode("edit", writing(&["/repo/a.txt"]))),
        ("tool.execute.before-write", opencode("write", writing_whole(&["/repo/c.txt"]))),
        ("tool.execute.before-write-relative", opencode("write", writing_whole(&["rel.txt"]))),
        ("tool.execute.before-read", opencode("read", Event::Calling)),
        ("tool.execute.before-bash", opencode("bash", Event::Calling)),
        ("tool.execute.before-bash-relative", opencode("bash", Event::Calling)),
        ("tool.execute.after-edit", opencode_after("edit", wrote(&["/repo/a.txt"]))),
        ("tool.execute.after-write", opencode_after("write", wrote(&["/repo/c.txt"]))),
        ("tool.execute.after-write-relative", opencode_after("write", wrote(&["rel.txt"]))),
        ("tool.execute.after-read", opencode_after("read", read_file("/repo/a.txt"))),
        ("tool.execute.after-bash", opencode_after("bash", Event::Other)),
        ("tool.execute.after-bash-relative", opencode_after("bash", Event::Other)),
        ("event-session.created", Heard { cwd: Some("/repo".into()), ..said(Event::Started) }),
        ("event-session.idle", idle()),
        ("event-session.status-idle", idle()),
        ("event-session.status-busy", said(Event::Other)),
        ("shell.env", Heard { cwd: Some("/repo".into()), call: Some(CALL.to_owned()), ..said(Event::Other) }),
    ]
}

/// OpenCode says these of no session, so nobody can be told by them.
const OF_NO_SESSION: [&str; 2] = ["opencode-event-file.edited", "opencode-plugin.init"];

fn table() -> Vec<(Agent, String, Heard)> {
    let agents = [
        (Agent::Claude, claudes()),
        (Agent::Codex, codexes()),
        (Agent::Gemini, geminis()),
        (Agent::OpenCode, opencodes()),
    ];
    let rows = agents.into_iter().flat_map(|(agent, rows)| {
        rows.into_iter().map(move |(name, heard)| (agent, format!("{agent}-{name}"), heard))
    });
    rows.collect()
}

fn payload(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.json"))).expect("the fixture")
}

// S4-11, S4-15, S4-16: no agent says anything that it would not say without leases.
#[test]
fn every_recorded_payload_is_parsed() {
    assert_eq!(heard().session, SESSION);
    for (agent, name, expected) in table() {
        assert_eq!(read(agent, &payload(&name)), Ok(expected), "{name}");
    }
}

#[test]
fn opencode_events_without_a_session_block_nothing() {
    for name in OF_NO_SESSION {
        let unheard = read(Agent::OpenCode, &payload(name)).expect_err(name);
        assert_eq!(unheard.wrong(), &Wrong::Missing("sessionID"), "{name}");
        assert!(!unheard.is_before_a_call(), "{name}");
    }
}

#[test]
fn every_recorded_payload_has_an_expectation() {
    let expected: BTreeSet<String> =
        table().into_iter().map(|(_, name, _)| name).chain(OF_NO_SESSION.map(str::to_owned)).collect();
    let found: BTreeSet<String> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| {
            entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned()
        })
        // Which processes agents are is asked elsewhere.
        .filter(|name| !name.ends_with("-process") && !name.starts_with("what-"))
        .collect();
    assert_eq!(found, expected);
}
