//! Every failure of a hook is a denial, in the form that the agent obeys.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tenure_hooks::HookEvent;
use tenure_host::coding_agent::CodingAgent;
use tenure_testkit::{CommandOutput, TestRepository};

/// What real agents have sent, each with its agent.
fn payloads() -> Vec<(CodingAgent, String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenure-hooks/tests/fixtures/hooks");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let agent = name.split('-').next().unwrap().parse::<CodingAgent>();
        if let Ok(agent) = agent
            && !name.contains("process")
        {
            found.push((agent, name, bytes));
        }
    }
    let write = json!({
        "conversation_id": "c1", "generation_id": "g1", "hook_event_name": "preToolUse", "tool_name": "Write",
        "tool_input": {"file_path": "/repo/a.txt"}, "workspace_roots": ["/repo"], "cwd": "/repo",
    });
    found.push((CodingAgent::Cursor, "cursor-preToolUse-Write".to_owned(), write.to_string().into_bytes()));
    found
}

fn is_denied(agent: CodingAgent, result: &CommandOutput) -> bool {
    let answer: Value = serde_json::from_str(&result.output).unwrap_or_default();
    match agent {
        CodingAgent::Claude | CodingAgent::Codex => {
            answer["hookSpecificOutput"]["permissionDecision"] == "deny" && answer.get("continue").is_none()
        }
        CodingAgent::Gemini | CodingAgent::OpenCode => answer["decision"] == "deny",
        CodingAgent::Cursor => answer["permission"] == "deny",
    }
}

/// A repo on which no server can ever start: its data directory is below a file.
fn hopeless() -> TestRepository {
    let repo = TestRepository::new();
    fs::write(repo.path("file"), "").unwrap();
    repo.configure(&format!("data = '{}'\n", repo.path("file/data").display()));
    repo
}

// S4-15, S4-11
#[test]
fn every_write_is_denied_without_a_server_that_can_start() {
    let repo = hopeless();
    let payloads = payloads();
    // Whatever a tool is about to do: what a shell would do to files, nobody would see.
    let calls = |agent: CodingAgent, bytes: &[u8]| {
        tenure_hooks::parse_payload(agent, bytes).is_ok_and(|parsed| {
            matches!(parsed.event, HookEvent::BeforeWrite { .. } | HookEvent::BeforeToolCall)
        })
    };
    let count = payloads.iter().filter(|(agent, _, bytes)| calls(*agent, bytes)).count();
    assert!(count > 35, "{count}");
    // Several at once: each looks on for a while whether somebody else starts one.
    let repo = &repo;
    std::thread::scope(|scope| {
        for part in payloads.chunks(payloads.len().div_ceil(8)) {
            scope.spawn(move || {
                for (agent, name, bytes) in part {
                    let result = repo.run_hook(agent.as_str(), bytes);
                    if calls(*agent, bytes) {
                        assert!(is_denied(*agent, &result), "{name}: {result:?}");
                        let fix = "tenure serve --listen none";
                        assert!(
                            result.output.contains(fix) && result.output.contains("file/data"),
                            "{name}: {result:?}"
                        );
                    } else {
                        assert_eq!(result.code, Some(0), "{name}: {result:?}");
                        assert!(!result.output.contains("deny"), "{name}: {result:?}");
                    }
                }
            });
        }
    });
    assert!(repo.server_pids().is_empty());
}

#[test]
fn unusable_configuration_denies_with_the_reason() {
    let repo = TestRepository::new();
    for (text, why) in [("color = 'red'", "`color`"), ("socket = 'none'", "socket = \\\"none\\\"")] {
        repo.configure(text);
        let result = repo.run_hook("claude", repo.edit_payload("s1", "a").to_string().as_bytes());
        assert!(!result.is_allowed() && result.output.contains(why), "{result:?}");
    }
    assert!(repo.server_pids().is_empty());
}

#[test]
fn invalid_payload_is_blocked_and_starts_no_server() {
    let repo = TestRepository::new();
    for payload in [&b""[..], b"{", b"[]", b"\xff\xfe", b"null"] {
        for agent in ["claude", "codex", "gemini", "cursor", "opencode"] {
            let result = repo.run_hook(agent, payload);
            let is_blocked = result.code == Some(2) && !result.errors.trim().is_empty();
            assert!(is_blocked || result.output.contains("deny"), "{agent} {payload:?}: {result:?}");
        }
    }
    for agent in ["claude", "codex"] {
        let result = repo.run_hook(agent, br#"{"hook_event_name": "PreToolUse"}"#);
        assert_eq!(result.code, Some(2), "{agent}: {result:?}");
    }
    let result = repo.run_hook("claude", &vec![b' '; (16 << 20) + 4_000_000]);
    assert_eq!(result.code, Some(2), "{result:?}");
    assert!(repo.server_pids().is_empty() && repo.daemon_log().is_empty());
}

#[test]
fn misconfigured_hook_blocks_with_a_reason() {
    let repo = TestRepository::new();
    for arguments in [&["hook"][..], &["hook", "cladue"], &["hook", "claude", "more"], &["hook", "--agent"]] {
        let result = repo.run(arguments);
        assert_eq!((result.code, result.output.as_str()), (Some(2), ""), "{arguments:?}: {result:?}");
        assert!(result.errors.contains("tenure install"), "{result:?}");
    }
    let help = repo.run(&["hook", "--help"]);
    assert_eq!(help.code, Some(0), "{help:?}");
    assert!(help.output.contains("Whatever goes wrong is a denial"), "{help:?}");
}
