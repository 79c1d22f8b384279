//! Payloads as the agents themselves sent them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tenure_hooks::{HookEvent, HookPayload, HookWaitPolicy, PayloadErrorKind, Subagent, parse_payload};
use tenure_host::coding_agent::CodingAgent;

use super::{SESSION, paths, payload, writing, writing_whole, wrote};

const TOOL_USE: &str = "toolu_00000000000000000001";
const CALL: &str = "call_00000000000000000001";
const CODE_MODE_CALL: &str = "exec-00000000-0000-4000-8000-000000000003";
const OPENCODE_SESSION: &str = "ses_00000000000000000000000001";
const PROMPT: &str = "Please follow the script.";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks")
}

fn event(event: HookEvent) -> HookPayload {
    HookPayload { event, ..payload() }
}

fn prompted() -> HookPayload {
    HookPayload { event: HookEvent::Prompted, task: Some(PROMPT.to_owned()), ..payload() }
}

fn ended(reason: &str) -> HookPayload {
    event(HookEvent::Ended { reason: reason.to_owned() })
}

fn turn_ended(still_working: bool) -> HookPayload {
    event(HookEvent::TurnEnded { still_working })
}

fn called(tool: &str, call: Option<&str>, event: HookEvent) -> HookPayload {
    HookPayload { event, tool: Some(tool.to_owned()), call: call.map(str::to_owned), ..payload() }
}

fn claude(tool: &str, event: HookEvent) -> HookPayload {
    called(tool, Some(TOOL_USE), event)
}

fn codex(tool: &str, event: HookEvent) -> HookPayload {
    called(tool, Some(CALL), event)
}

fn opencode(tool: &str, event: HookEvent) -> HookPayload {
    HookPayload { session: OPENCODE_SESSION.to_owned(), ..called(tool, Some(CALL), event) }
}

/// What comes after a call says nothing of the folder.
fn opencode_after(tool: &str, event: HookEvent) -> HookPayload {
    HookPayload { cwd: None, ..opencode(tool, event) }
}

fn in_sub(payload: HookPayload) -> HookPayload {
    HookPayload { cwd: Some("/repo/sub".into()), ..payload }
}

fn by_subagent(payload: HookPayload) -> HookPayload {
    let kind = Some("general-purpose".to_owned());
    HookPayload {
        subagent: Some(Subagent { id: "a0000000000000001".to_owned(), kind, parent: None }),
        ..payload
    }
}

fn in_code_mode(payload: HookPayload) -> HookPayload {
    HookPayload {
        call: Some(CODE_MODE_CALL.to_owned()),
        wait_policy: HookWaitPolicy::DenyImmediately,
        ..payload
    }
}

fn read_file(name: &str) -> HookEvent {
    HookEvent::AfterRead { paths: paths(&[name]) }
}

fn claudes() -> Vec<(&'static str, HookPayload)> {
    let a = &["/repo/a.txt"];
    let rel = &["/repo/sub/rel.txt"];
    vec![
        ("PreToolUse-Bash", claude("Bash", HookEvent::BeforeToolCall)),
        ("PreToolUse-Bash-after-cd", claude("Bash", HookEvent::BeforeToolCall)),
        ("PreToolUse-Bash-after-cd-2", in_sub(claude("Bash", HookEvent::BeforeToolCall))),
        ("PreToolUse-Bash-subagent", by_subagent(claude("Bash", HookEvent::BeforeToolCall))),
        ("PreToolUse-Edit", claude("Edit", writing(a))),
        ("PreToolUse-Edit-after-cd", in_sub(claude("Edit", writing(a)))),
        ("PreToolUse-Edit-subagent", by_subagent(claude("Edit", writing(a)))),
        ("PreToolUse-Read", claude("Read", HookEvent::BeforeToolCall)),
        ("PreToolUse-Read-after-cd", in_sub(claude("Read", HookEvent::BeforeToolCall))),
        ("PreToolUse-Read-subagent", by_subagent(claude("Read", HookEvent::BeforeToolCall))),
        ("PreToolUse-Write", claude("Write", writing_whole(&["/repo/c.txt"]))),
        ("PreToolUse-Write-after-cd", in_sub(claude("Write", writing_whole(rel)))),
        ("PostToolUse-Bash", claude("Bash", HookEvent::Other)),
        ("PostToolUse-Bash-after-cd", in_sub(claude("Bash", HookEvent::Other))),
        ("PostToolUse-Bash-subagent", by_subagent(claude("Bash", HookEvent::Other))),
        ("PostToolUse-Edit", claude("Edit", wrote(a))),
        ("PostToolUse-Edit-after-cd", in_sub(claude("Edit", wrote(a)))),
        ("PostToolUse-Edit-subagent", by_subagent(claude("Edit", wrote(a)))),
        ("PostToolUse-Read", claude("Read", read_file("/repo/a.txt"))),
        ("PostToolUse-Read-after-cd", in_sub(claude("Read", read_file("/repo/a.txt")))),
        ("PostToolUse-Read-subagent", by_subagent(claude("Read", read_file("/repo/a.txt")))),
        ("PostToolUse-Write", claude("Write", wrote(&["/repo/c.txt"]))),
        ("PostToolUse-Write-after-cd", in_sub(claude("Write", wrote(rel)))),
        ("PostToolUseFailure-Bash", claude("Bash", HookEvent::Other)),
        ("SessionStart", event(HookEvent::Started)),
        ("SessionEnd", ended("other")),
        ("Stop", turn_ended(false)),
        ("Stop-subagent", turn_ended(true)),
        ("Stop-subagent-2", turn_ended(false)),
        (
            "SubagentStart-subagent",
            HookPayload {
                task: Some("general-purpose".to_owned()),
                ..by_subagent(event(HookEvent::SubagentStarted))
            },
        ),
        ("SubagentStop-subagent", by_subagent(event(HookEvent::SubagentEnded))),
        ("UserPromptSubmit", prompted()),
        ("UserPromptSubmit-subagent", prompted()),
        // Claude tells itself that a task is done: nobody asked for anything new.
        ("UserPromptSubmit-subagent-2", event(HookEvent::Prompted)),
    ]
}

fn codexes() -> Vec<(&'static str, HookPayload)> {
    let many = &["a.txt", "new/d.txt", "b.txt", "moved/b2.txt", "README.md"];
    vec![
        ("PreToolUse-Bash", codex("Bash", HookEvent::BeforeToolCall)),
        ("PreToolUse-Bash-add", codex("Bash", HookEvent::BeforeToolCall)),
        ("PreToolUse-Bash-multi", codex("Bash", writing_whole(&["e.txt"]))),
        ("PreToolUse-Bash-workdir", codex("Bash", HookEvent::BeforeToolCall)),
        ("PreToolUse-Bash-workdir-2", in_sub(codex("Bash", HookEvent::BeforeToolCall))),
        ("PreToolUse-Bash-workdir-3", codex("Bash", writing_whole(&["sub/f.txt"]))),
        ("PreToolUse-Bash-workdir-4", codex("Bash", HookEvent::BeforeToolCall)),
        ("PreToolUse-apply_patch", codex("apply_patch", writing(&["a.txt"]))),
        ("PreToolUse-apply_patch-add", codex("apply_patch", writing_whole(&["c.txt"]))),
        ("PreToolUse-apply_patch-add-2", codex("apply_patch", writing(&["a.txt"]))),
        ("PreToolUse-apply_patch-multi", codex("apply_patch", writing(many))),
        ("PostToolUse-Bash", codex("Bash", HookEvent::Other)),
        ("PostToolUse-Bash-add", codex("Bash", HookEvent::Other)),
        ("PostToolUse-Bash-workdir", codex("Bash", HookEvent::Other)),
        ("PostToolUse-apply_patch", codex("apply_patch", wrote(&["a.txt"]))),
        ("PostToolUse-apply_patch-add", codex("apply_patch", wrote(&["c.txt"]))),
        ("PostToolUse-apply_patch-multi", codex("apply_patch", wrote(many))),
        ("SessionStart", event(HookEvent::Started)),
        ("SessionEnd", ended("other")),
        ("Stop", turn_ended(false)),
        ("UserPromptSubmit", prompted()),
        ("codemode-PreToolUse-Bash", in_code_mode(codex("Bash", HookEvent::BeforeToolCall))),
        ("codemode-PreToolUse-apply_patch", in_code_mode(codex("apply_patch", writing(&["a.txt"])))),
        ("codemode-PostToolUse-Bash", in_code_mode(codex("Bash", HookEvent::Other))),
        ("codemode-PostToolUse-apply_patch", in_code_mode(codex("apply_patch", wrote(&["a.txt"])))),
        ("codemode-SessionStart", event(HookEvent::Started)),
        ("codemode-SessionEnd", ended("other")),
        ("codemode-Stop", turn_ended(false)),
        ("codemode-UserPromptSubmit", prompted()),
    ]
}

fn geminis() -> Vec<(&'static str, HookPayload)> {
    let shell = || called("run_shell_command", None, HookEvent::Other);
    let before = || called("run_shell_command", None, HookEvent::BeforeToolCall);
    vec![
        ("BeforeTool-replace", called("replace", None, writing(&["/repo/a.txt"]))),
        ("BeforeTool-write_file", called("write_file", None, writing_whole(&["/repo/c.txt"]))),
        ("BeforeTool-write_file-relative", called("write_file", None, writing_whole(&["rel.txt"]))),
        ("BeforeTool-read_file", called("read_file", None, HookEvent::BeforeToolCall)),
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
        ("SessionStart", event(HookEvent::Started)),
        ("SessionEnd", ended("exit")),
    ]
}

fn opencodes() -> Vec<(&'static str, HookPayload)> {
    let expected =
        |event| HookPayload { session: OPENCODE_SESSION.to_owned(), cwd: None, event, ..payload() };
    let idle = || expected(HookEvent::TurnEnded { still_working: false });
    vec![
        ("tool.execute.before-edit", opencode("edit", writing(&["/repo/a.txt"]))),
        ("tool.execute.before-write", opencode("write", writing_whole(&["/repo/c.txt"]))),
        ("tool.execute.before-write-relative", opencode("write", writing_whole(&["rel.txt"]))),
        ("tool.execute.before-read", opencode("read", HookEvent::BeforeToolCall)),
        ("tool.execute.before-bash", opencode("bash", HookEvent::BeforeToolCall)),
        ("tool.execute.before-bash-relative", opencode("bash", HookEvent::BeforeToolCall)),
        ("tool.execute.after-edit", opencode_after("edit", wrote(&["/repo/a.txt"]))),
        ("tool.execute.after-write", opencode_after("write", wrote(&["/repo/c.txt"]))),
        ("tool.execute.after-write-relative", opencode_after("write", wrote(&["rel.txt"]))),
        ("tool.execute.after-read", opencode_after("read", read_file("/repo/a.txt"))),
        ("tool.execute.after-bash", opencode_after("bash", HookEvent::Other)),
        ("tool.execute.after-bash-relative", opencode_after("bash", HookEvent::Other)),
        ("event-session.created", HookPayload { cwd: Some("/repo".into()), ..expected(HookEvent::Started) }),
        ("event-session.idle", idle()),
        ("event-session.status-idle", idle()),
        ("event-session.status-busy", expected(HookEvent::Other)),
        (
            "shell.env",
            HookPayload {
                cwd: Some("/repo".into()),
                call: Some(CALL.to_owned()),
                ..expected(HookEvent::Other)
            },
        ),
    ]
}

/// OpenCode says these of no session, so nobody can be told by them.
const OF_NO_SESSION: [&str; 2] = ["opencode-event-file.edited", "opencode-plugin.init"];

fn table() -> Vec<(CodingAgent, String, HookPayload)> {
    let agents = [
        (CodingAgent::Claude, claudes()),
        (CodingAgent::Codex, codexes()),
        (CodingAgent::Gemini, geminis()),
        (CodingAgent::OpenCode, opencodes()),
    ];
    let expectations = agents.into_iter().flat_map(|(agent, rows)| {
        rows.into_iter().map(move |(name, payload)| (agent, format!("{agent}-{name}"), payload))
    });
    expectations.collect()
}

fn recorded_payload(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.json"))).expect("the fixture")
}

// S4-11, S4-15, S4-16: no agent says anything that it would not say without leases.
#[test]
fn every_recorded_payload_is_parsed() {
    assert_eq!(payload().session, SESSION);
    for (agent, name, expected) in table() {
        assert_eq!(parse_payload(agent, &recorded_payload(&name)), Ok(expected), "{name}");
    }
}

#[test]
fn opencode_events_without_a_session_block_nothing() {
    for name in OF_NO_SESSION {
        let unheard = parse_payload(CodingAgent::OpenCode, &recorded_payload(name)).expect_err(name);
        assert_eq!(unheard.kind(), &PayloadErrorKind::Missing("sessionID"), "{name}");
        assert!(!unheard.is_pre_tool_use(), "{name}");
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
        .filter(|name| !name.starts_with("what-"))
        .collect();
    assert_eq!(found, expected);
}
