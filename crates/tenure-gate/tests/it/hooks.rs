//! What agents say through their hooks, and how each is answered.

mod answers;
mod cursor;
mod fixtures;
mod malformed;
mod opencode;
mod patches;
mod property;
mod tools;
mod wording;

use std::path::PathBuf;

use serde_json::{Value, json};
use tenure_gate::agent::Agent;
use tenure_gate::hooks::{Answer, Event, Heard, Patience, Unheard, read};

/// The session in most payloads.
const SESSION: &str = "00000000-0000-4000-8000-000000000001";

/// A session in `/repo` that says nothing in particular.
fn heard() -> Heard {
    Heard {
        session: SESSION.to_owned(),
        subagent: None,
        cwd: Some("/repo".into()),
        event: Event::Other,
        call: None,
        tool: None,
        task: None,
        patience: Patience::Hold,
    }
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn writing(names: &[&str]) -> Event {
    Event::Writing { paths: paths(names), whole: false }
}

fn writing_whole(names: &[&str]) -> Event {
    Event::Writing { paths: paths(names), whole: true }
}

fn wrote(names: &[&str]) -> Event {
    Event::Wrote { paths: paths(names), failed: false }
}

fn read_json(agent: Agent, payload: &Value) -> Result<Heard, Unheard> {
    read(agent, payload.to_string().as_bytes())
}

/// What `agent` says before it calls `tool`.
fn before(agent: Agent, tool: &str, input: &Value) -> Value {
    match agent {
        Agent::Claude | Agent::Codex => json!({
            "session_id": SESSION, "cwd": "/repo", "hook_event_name": "PreToolUse",
            "tool_name": tool, "tool_input": input, "tool_use_id": "call",
        }),
        Agent::Gemini => json!({
            "session_id": SESSION, "cwd": "/repo", "hook_event_name": "BeforeTool",
            "tool_name": tool, "tool_input": input,
        }),
        Agent::Cursor => json!({
            "conversation_id": SESSION, "cwd": "/repo", "hook_event_name": "preToolUse",
            "tool_name": tool, "tool_input": input, "tool_use_id": "call",
        }),
        Agent::OpenCode => json!({
            "event": "tool.execute.before", "directory": "/repo",
            "input": {"tool": tool, "sessionID": SESSION, "callID": "call"}, "output": {"args": input},
        }),
    }
}

/// A tool of each agent that changes a file, and what it is given.
fn edit(agent: Agent) -> (&'static str, Value) {
    match agent {
        Agent::Claude => ("Edit", json!({"file_path": "/repo/a", "old_string": "x", "new_string": "y"})),
        Agent::Codex => ("apply_patch", json!({"command": "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"})),
        Agent::Gemini => ("replace", json!({"file_path": "/repo/a", "old_string": "x", "new_string": "y"})),
        Agent::Cursor => ("Delete", json!({"file_path": "/repo/a"})),
        Agent::OpenCode => ("edit", json!({"filePath": "/repo/a", "oldString": "x", "newString": "y"})),
    }
}

/// Whether the edit happens after this answer, as it was measured with the agents themselves.
fn lets_through(agent: Agent, answer: &Answer) -> bool {
    let said: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
    let output = &said["hookSpecificOutput"];
    let has_reason = |reason: &Value| reason.as_str().is_some_and(|reason| !reason.trim().is_empty());
    let denies = output["permissionDecision"] == "deny" && output["hookEventName"] == "PreToolUse";
    let blocks = said["decision"] == "block";
    let stops = said["continue"] == false;
    let is_blocked = match (agent, answer.code) {
        (Agent::Claude, 2) => true,
        (Agent::Claude, 0) => denies || blocks,
        // Codex wants a plain denial with a reason, and a word on standard error with exit code 2.
        (Agent::Codex, 2) => !answer.stderr.trim().is_empty(),
        (Agent::Codex, 0) => {
            !stops && (denies && has_reason(&output["permissionDecisionReason"]) || blocks && has_reason(&said["reason"]))
        }
        (Agent::Gemini, 2) => !answer.stderr.trim().is_empty() || said["decision"] == "deny",
        (Agent::Gemini, 0) => said["decision"] == "deny" || blocks || stops,
        (Agent::Cursor, 2) => true,
        (Agent::Cursor, 0) => said["permission"] == "deny",
        (Agent::OpenCode, 0) => said["decision"] == "deny",
        _ => false,
    };
    !is_blocked
}
