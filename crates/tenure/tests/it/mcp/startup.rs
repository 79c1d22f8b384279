//! `tenure mcp`: how it begins, how it ends, and what it tells of itself. No Tenure server is needed for that.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tenure_testkit::tenure_command;

use crate::mcp::client::{McpAgent, lifecycle_modes};

/// What models read of the tools. Whoever changes it looks at it.
const TOOLS: &str = include_str!("../mcp_tools.json");

fn alone(folder: &tempfile::TempDir) -> Command {
    let mut command = tenure_command(folder.path());
    command.args(["mcp", "--agent", "ann"]);
    command
}

#[test]
fn tool_descriptions_match_the_golden_file() {
    let folder = tempfile::tempdir().unwrap();
    for begin in lifecycle_modes() {
        let agent = McpAgent::start_with(&mut alone(&folder), begin);
        let instructions: Vec<_> = agent.instructions().lines().map(str::to_owned).collect();
        let now = json!({"instructions": instructions, "tools": agent.tools()});
        let now = serde_json::to_string_pretty(&now).unwrap() + "\n";
        if now != TOOLS {
            let place = concat!(env!("CARGO_TARGET_TMPDIR"), "/mcp_tools.json");
            std::fs::write(place, &now).unwrap();
            panic!("what models read has changed: look at it, then copy {place} to tests/it/mcp_tools.json");
        }
        let names: Vec<_> = agent.tools().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["declare", "status", "who", "heartbeat", "release", "report"]);
    }
}

#[test]
fn every_described_argument_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let agent = McpAgent::start(&mut alone(&folder));
    for tool in agent.tools() {
        let properties = tool.input_schema["properties"].as_object().unwrap().clone();
        // A list is of the wrong type for each of them, or has the wrong length: what is said must not be that it is unknown.
        for name in properties.keys() {
            let result = agent.call_with_error(&tool.name, json!({ name.as_str(): [[]] }));
            assert!(!result.text.contains("unknown field"), "{} {name}: {result:?}", tool.name);
        }
        let result = agent.call_with_error(&tool.name, json!({"something_else": 1}));
        assert!(result.text.contains("unknown field `something_else`"), "{result:?}");
    }
}

#[test]
fn unreachable_server_is_a_tool_error_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let agent = McpAgent::start(&mut alone(&folder));
    for (tool, arguments) in [
        ("declare", json!({"touch": [{"path": "a.rs"}]})),
        ("status", json!({})),
        ("who", json!({"path": "a.rs"})),
        ("heartbeat", json!({})),
        ("release", json!({})),
        ("report", json!({"state": "EXECUTING"})),
    ] {
        let result = agent.call_with_error(tool, arguments);
        assert_eq!(result.data["error"]["code"], "UNREACHABLE", "{tool}: {result:?}");
        assert!(
            result.text.contains("tenure serve") && result.text.contains("do not edit"),
            "{tool}: {result:?}"
        );
    }
    assert!(agent.try_call("burn", json!({})).is_err(), "there is no such tool");
    assert_eq!(agent.disconnect(), (Some(0), String::new()));
}

#[test]
fn invalid_arguments_are_rejected_without_repeating_their_values() {
    let folder = tempfile::tempdir().unwrap();
    let agent = McpAgent::start(&mut alone(&folder));
    for (tool, arguments) in [
        ("declare", json!({})),
        ("declare", json!({"touch": "hunter2"})),
        ("declare", json!({"touch": [{"path": "a", "action": "hunter2"}]})),
        ("declare", json!({"touch": [{"path": "a"}], "ttl_seconds": "hunter2"})),
        ("declare", json!({"touch": [{"path": "a"}], "ttl_seconds": -1})),
        ("report", json!({})),
        ("report", json!({"state": "hunter2"})),
        ("who", json!({})),
    ] {
        let result = agent.call_with_error(tool, arguments.clone());
        assert_eq!(result.data["error"]["code"], "INVALID", "{arguments}: {result:?}");
        assert!(!result.text.contains("hunter2") && result.text.contains("What to do"), "{result:?}");
    }
    let result = agent.call_with_error("declare", json!({"touch": [{"path": "a"}], "ttl_seconds": "30"}));
    assert!(result.text.contains("`ttl_seconds` is not as it should be"), "{result:?}");
    let result = agent.call_with_error("declare", json!({"touch": "a", "wait_seconds": 1}));
    assert!(result.text.contains("`touch` is not as it should be"), "{result:?}");
}

#[test]
fn mcp_server_ends_with_its_client_and_on_signals() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(McpAgent::start(&mut alone(&folder)).disconnect(), (Some(0), String::new()));
    for signal in ["TERM", "INT"] {
        let mut agent = McpAgent::start(&mut alone(&folder));
        agent.signal(signal);
        assert_eq!(agent.wait(), Some(0), "{signal}");
    }
    // Nobody has said anything yet.
    let mut silent = alone(&folder).stdin(Stdio::piped()).spawn().unwrap();
    drop(silent.stdin.take());
    let done = silent.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.stdout.len(), done.stderr.len()), (Some(0), 0, 0));
}

#[test]
fn malformed_input_is_rejected_and_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = alone(&folder).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hunter2\n{\"hunter2\": 1}\n\n").unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(matches!(done.status.code(), Some(0 | 69)), "{done:?}");
    for line in String::from_utf8(done.stdout).unwrap().lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert!(answer["error"].is_object() && !line.contains("hunter2"), "{line}");
    }
    assert!(!String::from_utf8(done.stderr).unwrap().contains("hunter2"));
}

#[test]
fn unsafe_listen_settings_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], url: &str| {
        let mut command = tenure_command(folder.path());
        let done = command.arg("mcp").args(arguments).env("TENURE_URL", url).output().unwrap();
        let errors = String::from_utf8(done.stderr).unwrap();
        assert!(done.stdout.is_empty() && !errors.is_empty());
        (done.status.code().unwrap(), errors)
    };
    let (code, errors) = refused(&["--listen", "0.0.0.0:0"], "http://127.0.0.1:1");
    assert!(code == 64 && errors.contains("--remote"), "{errors}");
    let (code, errors) = refused(&["--listen", "127.0.0.1:0"], "unix:/nowhere");
    assert!(code == 78 && errors.contains("--without-token"), "{errors}");
    let (code, errors) = refused(&["--root", "projct"], "http://127.0.0.1:1");
    assert!(code == 64 && errors.contains("--root names no folder"), "{errors}");
    for arguments in [
        &["--listen", "0.0.0.0:0", "--remote", "--without-token"][..],
        &["--without-token"],
        &["--remote"],
        &["--host", "a"],
    ] {
        assert_eq!(refused(arguments, "http://127.0.0.1:1").0, 64, "{arguments:?}");
    }
}
