//! Cursor's events, as its documentation has them.

use serde_json::{Value, json};
use tenure_hooks::{HookEvent, HookPayload, Subagent};
use tenure_host::coding_agent::CodingAgent;

use super::{paths, payload, read_json, writing, writing_whole, wrote};

/// An event with the fields that all of them have.
fn parse_event(name: &str, more: Value) -> HookPayload {
    let mut payload = json!({
        "conversation_id": "conv", "generation_id": "gen", "model": "m", "hook_event_name": name,
        "cursor_version": "2.0", "workspace_roots": ["/repo", "/other"], "user_email": "a@example.org",
    });
    payload.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("fields"));
    read_json(CodingAgent::Cursor, &payload).expect(name)
}

fn expected(event: HookEvent) -> HookPayload {
    HookPayload { session: "conv".to_owned(), event, ..payload() }
}

fn called(tool: &str, call: Option<&str>, event: HookEvent) -> HookPayload {
    HookPayload { tool: Some(tool.to_owned()), call: call.map(str::to_owned), ..expected(event) }
}

// S4-11, S4-15
#[test]
fn cursor_tools_are_parsed_before_they_change_files() {
    let input = json!({"file_path": "/repo/a", "content": "x"});
    let more = json!({"tool_name": "Write", "tool_input": input, "tool_use_id": "t", "cwd": "/repo/sub"});
    let in_sub = HookPayload {
        cwd: Some("/repo/sub".into()),
        ..called("Write", Some("t"), writing_whole(&["/repo/a"]))
    };
    assert_eq!(parse_event("preToolUse", more), in_sub);
    let more = json!({"tool_name": "Delete", "tool_input": {"path": "a"}, "tool_use_id": "t"});
    assert_eq!(parse_event("preToolUse", more), called("Delete", Some("t"), writing(&["a"])));
    let more = json!({"tool_name": "Shell", "tool_input": {"command": "ls"}, "tool_use_id": "t"});
    assert_eq!(parse_event("preToolUse", more), called("Shell", Some("t"), HookEvent::BeforeToolCall));
    let more = json!({"tool_name": "write_file", "tool_input": "{\"path\": \"a\", \"content\": \"x\"}", "url": "http://x"});
    assert_eq!(parse_event("beforeMCPExecution", more), called("write_file", None, writing_whole(&["a"])));
    let more = json!({"tool_name": "query", "tool_input": "{\"sql\": \"select 1\"}", "command": "npx x"});
    assert_eq!(parse_event("beforeMCPExecution", more), called("query", None, HookEvent::BeforeToolCall));
    assert_eq!(
        parse_event("beforeShellExecution", json!({"command": "ls", "cwd": "/repo"})),
        expected(HookEvent::BeforeToolCall)
    );
}

#[test]
fn cursor_edits_and_reads_are_parsed_afterwards() {
    let edits = json!([{"old_string": "x", "new_string": "y"}]);
    let more = json!({"file_path": "/repo/a", "edits": edits});
    assert_eq!(parse_event("afterFileEdit", more.clone()), expected(wrote(&["/repo/a"])));
    assert_eq!(parse_event("afterTabFileEdit", more), expected(wrote(&["/repo/a"])));
    let more = json!({"file_path": "/repo/a", "content": "x", "attachments": []});
    assert_eq!(
        parse_event("beforeReadFile", more),
        expected(HookEvent::AfterRead { paths: paths(&["/repo/a"]) })
    );
    let call = json!({"tool_name": "Write", "tool_input": {"file_path": "/repo/a"}, "tool_use_id": "t"});
    assert_eq!(parse_event("postToolUse", call.clone()), called("Write", Some("t"), wrote(&["/repo/a"])));
    let failed = HookEvent::AfterWrite { paths: paths(&["/repo/a"]), failed: true };
    assert_eq!(parse_event("postToolUseFailure", call), called("Write", Some("t"), failed));
    let read = json!({"tool_name": "Read", "tool_input": {"path": "/repo/a"}, "tool_use_id": "t"});
    assert_eq!(
        parse_event("postToolUse", read),
        called("Read", Some("t"), HookEvent::AfterRead { paths: paths(&["/repo/a"]) })
    );
    assert_eq!(
        parse_event("afterShellExecution", json!({"command": "ls", "output": ""})),
        expected(HookEvent::Other)
    );
}

// S4-31
#[test]
fn cursor_session_and_turn_events_are_parsed() {
    let task = Some("do it".to_owned());
    assert_eq!(
        parse_event("beforeSubmitPrompt", json!({"prompt": "do it"})),
        HookPayload { task, ..expected(HookEvent::Prompted) }
    );
    assert_eq!(
        parse_event("sessionStart", json!({"session_id": "other name"})),
        expected(HookEvent::Started)
    );
    let ended = HookEvent::Ended { reason: "user_close".to_owned() };
    assert_eq!(
        parse_event("sessionEnd", json!({"session_id": "conv", "reason": "user_close"})),
        expected(ended)
    );
    let unknown = HookEvent::Ended { reason: "unknown".to_owned() };
    assert_eq!(parse_event("sessionEnd", json!({})), expected(unknown));
    let turn = HookEvent::TurnEnded { still_working: false };
    assert_eq!(parse_event("stop", json!({"status": "completed", "loop_count": 0})), expected(turn));
}

#[test]
fn cursor_subagents_are_parsed_with_their_parent() {
    let more = json!({
        "subagent_id": "sub", "subagent_type": "explore", "task": "look around", "parent_conversation_id": "conv",
    });
    let subagent =
        Subagent { id: "sub".to_owned(), kind: Some("explore".to_owned()), parent: Some("conv".to_owned()) };
    let started = HookPayload {
        subagent: Some(subagent),
        task: Some("look around".to_owned()),
        ..expected(HookEvent::SubagentStarted)
    };
    assert_eq!(parse_event("subagentStart", more), started);
    let stopped = HookPayload { task: Some("explore".to_owned()), ..expected(HookEvent::SubagentEnded) };
    assert_eq!(
        parse_event("subagentStop", json!({"subagent_type": "explore", "status": "completed"})),
        stopped
    );
}
