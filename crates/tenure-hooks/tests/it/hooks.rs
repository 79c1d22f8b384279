//! What agents say through their hooks, and how each is answered.

mod cursor;
mod fixtures;
mod invalid_payloads;
mod messages;
mod opencode;
mod patches;
mod property;
mod responses;
mod shell_patches;
mod tools;

use std::path::PathBuf;

use serde_json::{Value, json};
use tenure_hooks::{HookEvent, HookPayload, HookResponse, HookWaitPolicy, PayloadError, parse_payload};
use tenure_host::coding_agent::CodingAgent;

/// The session in most payloads.
const SESSION: &str = "00000000-0000-4000-8000-000000000001";

/// A session in `/repo` that says nothing in particular.
fn payload() -> HookPayload {
    HookPayload {
        session: SESSION.to_owned(),
        subagent: None,
        cwd: Some("/repo".into()),
        event: HookEvent::Other,
        call: None,
        tool: None,
        task: None,
        wait_policy: HookWaitPolicy::WaitForRetry,
    }
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn writing(names: &[&str]) -> HookEvent {
    HookEvent::BeforeWrite { paths: paths(names), replaces_content: false }
}

fn writing_whole(names: &[&str]) -> HookEvent {
    HookEvent::BeforeWrite { paths: paths(names), replaces_content: true }
}

fn wrote(names: &[&str]) -> HookEvent {
    HookEvent::AfterWrite { paths: paths(names), failed: false }
}

fn read_json(agent: CodingAgent, payload: &Value) -> Result<HookPayload, PayloadError> {
    parse_payload(agent, payload.to_string().as_bytes())
}

/// What `agent` says before it calls `tool`.
fn before(agent: CodingAgent, tool: &str, input: &Value) -> Value {
    match agent {
        CodingAgent::Claude | CodingAgent::Codex => json!({
            "session_id": SESSION, "cwd": "/repo", "hook_event_name": "PreToolUse",
            "tool_name": tool, "tool_input": input, "tool_use_id": "call",
        }),
        CodingAgent::Gemini => json!({
            "session_id": SESSION, "cwd": "/repo", "hook_event_name": "BeforeTool",
            "tool_name": tool, "tool_input": input,
        }),
        CodingAgent::Cursor => json!({
            "conversation_id": SESSION, "cwd": "/repo", "hook_event_name": "preToolUse",
            "tool_name": tool, "tool_input": input, "tool_use_id": "call",
        }),
        CodingAgent::OpenCode => json!({
            "event": "tool.execute.before", "directory": "/repo",
            "input": {"tool": tool, "sessionID": SESSION, "callID": "call"}, "output": {"args": input},
        }),
    }
}

/// A tool of each agent that changes a file, and what it is given.
fn edit(agent: CodingAgent) -> (&'static str, Value) {
    match agent {
        CodingAgent::Claude => {
            ("Edit", json!({"file_path": "/repo/a", "old_string": "x", "new_string": "y"}))
        }
        CodingAgent::Codex => {
            ("apply_patch", json!({"command": "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"}))
        }
        CodingAgent::Gemini => {
            ("replace", json!({"file_path": "/repo/a", "old_string": "x", "new_string": "y"}))
        }
        CodingAgent::Cursor => ("Delete", json!({"file_path": "/repo/a"})),
        CodingAgent::OpenCode => ("edit", json!({"filePath": "/repo/a", "oldString": "x", "newString": "y"})),
    }
}

/// Whether the edit happens after this answer, as it was measured with the agents themselves.
fn lets_through(agent: CodingAgent, answer: &HookResponse) -> bool {
    let response: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
    let output = &response["hookSpecificOutput"];
    let has_reason = |reason: &Value| reason.as_str().is_some_and(|reason| !reason.trim().is_empty());
    let denies = output["permissionDecision"] == "deny" && output["hookEventName"] == "PreToolUse";
    let blocks = response["decision"] == "block";
    let stops = response["continue"] == false;
    let is_blocked = match (agent, answer.code) {
        (CodingAgent::Claude, 2) => true,
        (CodingAgent::Claude, 0) => denies || blocks,
        // Codex wants a plain denial with a reason, and a word on standard error with exit code 2.
        (CodingAgent::Codex, 2) => !answer.stderr.trim().is_empty(),
        (CodingAgent::Codex, 0) => {
            !stops
                && (denies && has_reason(&output["permissionDecisionReason"])
                    || blocks && has_reason(&response["reason"]))
        }
        (CodingAgent::Gemini, 2) => !answer.stderr.trim().is_empty() || response["decision"] == "deny",
        (CodingAgent::Gemini, 0) => response["decision"] == "deny" || blocks || stops,
        (CodingAgent::Cursor, 2) => true,
        (CodingAgent::Cursor, 0) => response["permission"] == "deny",
        (CodingAgent::OpenCode, 0) => response["decision"] == "deny",
        _ => false,
    };
    !is_blocked
}
