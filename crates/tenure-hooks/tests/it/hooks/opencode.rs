//! What the plugin passes on, in each form in which it may come.

use serde_json::{Value, json};
use tenure_hooks::{HookEvent, HookPayload, Subagent};
use tenure_host::coding_agent::CodingAgent;

use super::{payload, read_json, writing_whole, wrote};

fn parse_event(payload: &Value) -> HookPayload {
    read_json(CodingAgent::OpenCode, payload).expect("an event")
}

fn expected(event: HookEvent) -> HookPayload {
    HookPayload { session: "ses".to_owned(), event, ..payload() }
}

// S4-11, S4-15
#[test]
fn tool_calls_are_parsed_with_and_without_an_event_name() {
    let input = json!({"tool": "write", "sessionID": "ses", "callID": "c"});
    let output = json!({"args": {"filePath": "a", "content": "x"}});
    let call = HookPayload {
        tool: Some("write".to_owned()),
        call: Some("c".to_owned()),
        ..expected(writing_whole(&["a"]))
    };
    let named =
        json!({"event": "tool.execute.before", "input": input, "output": output, "directory": "/repo"});
    assert_eq!(parse_event(&named), call);
    assert_eq!(parse_event(&json!({"input": input, "output": output, "directory": "/repo"})), call);

    let input = json!({"tool": "write", "sessionID": "ses", "callID": "c", "args": {"filePath": "a"}});
    let output = json!({"title": "a", "output": "Wrote file successfully.", "metadata": {}});
    let done = HookPayload { event: wrote(&["a"]), ..call };
    let named =
        json!({"event": "tool.execute.after", "input": input, "output": output, "directory": "/repo"});
    assert_eq!(parse_event(&named), done);
    assert_eq!(parse_event(&json!({"input": input, "output": output, "directory": "/repo"})), done);
}

// S4-31, S4-33
#[test]
fn bus_events_are_parsed_in_every_wrapping() {
    let idle = |wrapped: Value| {
        assert_eq!(parse_event(&wrapped), expected(HookEvent::TurnEnded { still_working: false }))
    };
    let bus = json!({"type": "session.idle", "properties": {"sessionID": "ses"}});
    idle(json!({"type": "session.idle", "properties": {"sessionID": "ses"}, "directory": "/repo"}));
    idle(json!({"event": bus, "directory": "/repo"}));
    idle(json!({"event": "event", "input": bus, "directory": "/repo"}));
    idle(json!({"event": "event", "input": {"event": bus}, "directory": "/repo"}));
    idle(json!({"event": "session.idle", "input": bus, "output": {}, "directory": "/repo"}));
    idle(json!({"event": "session.idle", "input": {"sessionID": "ses"}, "directory": "/repo"}));
    idle(json!({"event": "session.idle", "properties": {"sessionID": "ses"}, "directory": "/repo"}));
    let deleted =
        json!({"type": "session.deleted", "properties": {"info": {"id": "ses", "directory": "/repo"}}});
    assert_eq!(parse_event(&deleted), expected(HookEvent::Ended { reason: "deleted".to_owned() }));
}

#[test]
fn a_session_with_a_parent_is_a_subagent() {
    let info = json!({"id": "ses", "parentID": "parent", "directory": "/repo", "title": "look around", "agent": "explore"});
    let bus = json!({"type": "session.created", "properties": {"sessionID": "ses", "info": info}});
    let subagent = Subagent {
        id: "ses".to_owned(),
        kind: Some("explore".to_owned()),
        parent: Some("parent".to_owned()),
    };
    let started = HookPayload {
        subagent: Some(subagent),
        task: Some("look around".to_owned()),
        ..expected(HookEvent::SubagentStarted)
    };
    assert_eq!(parse_event(&bus), started);
}

#[test]
fn the_prompt_becomes_the_task() {
    let payload = json!({
        "event": "chat.message", "directory": "/repo", "input": {"sessionID": "ses"},
        "output": {"message": {}, "parts": [{"type": "file"}, {"type": "text", "text": "do it"}]},
    });
    assert_eq!(
        parse_event(&payload),
        HookPayload { task: Some("do it".to_owned()), ..expected(HookEvent::Prompted) }
    );
}
