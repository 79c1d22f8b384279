//! Which tools change files, beyond those that real payloads show.

use serde_json::{Value, json};
use tenure_hooks::{HookEvent, Subagent};
use tenure_host::coding_agent::CodingAgent;

use super::{before, paths, read_json, writing, writing_whole};

fn event(agent: CodingAgent, tool: &str, input: &Value) -> HookEvent {
    read_json(agent, &before(agent, tool, input)).expect("a call").event
}

// S4-15
#[test]
fn all_file_changing_tools_of_each_agent_are_recognized() {
    let table = [
        (
            CodingAgent::Claude,
            "MultiEdit",
            json!({"file_path": "/a", "edits": [{"old_string": "x"}]}),
            writing(&["/a"]),
        ),
        (CodingAgent::Claude, "NotebookEdit", json!({"notebook_path": "/a.ipynb"}), writing(&["/a.ipynb"])),
        (CodingAgent::Cursor, "Write", json!({"file_path": "/a", "content": "x"}), writing_whole(&["/a"])),
        (CodingAgent::Cursor, "Write", json!({"path": "/a", "old_string": "x"}), writing(&["/a"])),
        (CodingAgent::Cursor, "StrReplace", json!({"path": "/a"}), writing(&["/a"])),
        (
            CodingAgent::Cursor,
            "ApplyPatch",
            json!({"patch": "*** Begin Patch\n*** Delete File: a\n"}),
            writing(&["a"]),
        ),
        (
            CodingAgent::OpenCode,
            "multiedit",
            json!({"filePath": "/a", "edits": [{"filePath": "/b"}]}),
            writing(&["/a", "/b"]),
        ),
        (
            CodingAgent::OpenCode,
            "patch",
            json!({"patchText": "*** Begin Patch\n*** Add File: a\n+x"}),
            writing_whole(&["a"]),
        ),
        (CodingAgent::OpenCode, "apply_patch", json!({"patchText": "*** Delete File: a"}), writing(&["a"])),
    ];
    for (agent, tool, input, expected) in table {
        assert_eq!(event(agent, tool, &input), expected, "{agent} {tool}");
    }
}

// S4-15
#[test]
fn unknown_tools_are_classified_by_their_name() {
    let table = [
        ("mcp__fs__write_file", json!({"path": "a", "content": "x"}), writing_whole(&["a"])),
        ("mcp__fs__edit_file", json!({"path": "a", "edits": []}), writing(&["a"])),
        ("mcp__code__insert_after_symbol", json!({"relative_path": "a", "body": "x"}), writing(&["a"])),
        ("mcp__code__append_to_file", json!({"pathInProject": "a", "text": "x"}), writing(&["a"])),
        ("mcp__fs__move_file", json!({"source": "a", "destination": "b"}), writing(&["a", "b"])),
        ("rename_symbol", json!({"file_path": "a", "new_name": "x"}), writing(&["a"])),
        ("CreateFile", json!({"filePath": "a"}), writing(&["a"])),
        ("delete_files", json!({"paths": ["a", "b"]}), writing(&["a", "b"])),
        ("write_files", json!({"files": [{"path": "a"}, {"path": "b"}]}), writing(&["a", "b"])),
        ("apply_patch_v2", json!({"patch": "*** Begin Patch\n*** Delete File: a\n"}), writing(&["a"])),
        ("search_replace", json!({"path": ["a", "b"]}), writing(&["a", "b"])),
        ("mcp__fs__read_file", json!({"path": "a"}), HookEvent::BeforeToolCall),
        ("mcp__fs__list_directory", json!({"path": "a"}), HookEvent::BeforeToolCall),
        ("mcp__fs__create_directory", json!({"path": "a"}), HookEvent::BeforeToolCall),
        ("mcp__tracker__create_issue", json!({"title": "x"}), HookEvent::BeforeToolCall),
        ("json_replace", json!({"path": {"a": 1}}), HookEvent::BeforeToolCall),
        ("TodoWrite", json!({"todos": []}), HookEvent::BeforeToolCall),
        ("WebFetch", json!({"url": "https://example.org/edit", "path": 7}), HookEvent::BeforeToolCall),
    ];
    for (tool, input, expected) in table {
        for agent in CodingAgent::ALL {
            assert_eq!(event(agent, tool, &input), expected, "{agent} {tool}");
        }
    }
}

#[test]
fn only_successful_reads_of_named_files_are_recorded() {
    let mut payload =
        before(CodingAgent::Gemini, "read_many_files", &json!({"include": ["a", "src/*.rs", "b"]}));
    assert_eq!(read_json(CodingAgent::Gemini, &payload).expect("before").event, HookEvent::BeforeToolCall);
    payload["hook_event_name"] = json!("AfterTool");
    assert_eq!(
        read_json(CodingAgent::Gemini, &payload).expect("after").event,
        HookEvent::AfterRead { paths: paths(&["a", "b"]) }
    );
    payload["tool_input"] = json!({"include": ["src/*.rs"]});
    assert_eq!(read_json(CodingAgent::Gemini, &payload).expect("a pattern").event, HookEvent::Other);

    let mut payload = before(CodingAgent::Claude, "Read", &json!({"file_path": "/a"}));
    payload["hook_event_name"] = json!("PostToolUseFailure");
    assert_eq!(read_json(CodingAgent::Claude, &payload).expect("failed").event, HookEvent::Other);
}

#[test]
fn a_failed_edit_is_reported_as_failed() {
    let failed = HookEvent::AfterWrite { paths: paths(&["/a"]), failed: true };
    let mut payload = before(CodingAgent::Claude, "Edit", &json!({"file_path": "/a"}));
    payload["hook_event_name"] = json!("PostToolUseFailure");
    assert_eq!(read_json(CodingAgent::Claude, &payload).expect("Claude").event, failed);
    let mut payload = before(CodingAgent::Gemini, "replace", &json!({"file_path": "/a"}));
    payload["hook_event_name"] = json!("AfterTool");
    payload["tool_response"] = json!({"llmContent": "no", "error": {"message": "no"}});
    assert_eq!(read_json(CodingAgent::Gemini, &payload).expect("Gemini").event, failed);
}

// S4-33
#[test]
fn a_turn_with_running_background_tasks_is_still_working() {
    let turn = |tasks: Value| {
        let payload = json!({"session_id": "s", "hook_event_name": "Stop", "background_tasks": tasks});
        read_json(CodingAgent::Claude, &payload).expect("a stop").event
    };
    let ended = |still_working| HookEvent::TurnEnded { still_working };
    assert_eq!(turn(json!([])), ended(false));
    assert_eq!(turn(json!([{"type": "subagent", "status": "completed"}])), ended(false));
    assert_eq!(turn(json!([{"type": "subagent", "status": "running"}])), ended(true));
    assert_eq!(
        turn(json!([{"type": "x", "status": "running"}, {"type": "shell", "status": "running"}])),
        ended(true)
    );
    assert_eq!(turn(json!([{"type": "reminder", "status": "running"}])), ended(false));
    assert_eq!(turn(json!("nonsense")), ended(false));
}

#[test]
fn codex_subagents_are_parsed() {
    let mut payload = before(CodingAgent::Codex, "apply_patch", &json!({"command": "*** Delete File: a"}));
    payload["agent_id"] = json!("child");
    payload["agent_type"] = json!("reviewer");
    let parsed = read_json(CodingAgent::Codex, &payload).expect("a subagent");
    let kind = Some("reviewer".to_owned());
    assert_eq!(parsed.subagent, Some(Subagent { id: "child".to_owned(), kind, parent: None }));
    for (name, event) in
        [("SubagentStart", HookEvent::SubagentStarted), ("SubagentStop", HookEvent::SubagentEnded)]
    {
        payload["hook_event_name"] = json!(name);
        assert_eq!(read_json(CodingAgent::Codex, &payload).expect(name).event, event);
    }
}

#[test]
fn claude_event_names_are_case_insensitive() {
    let payload = json!({"conversation_id": "c", "hook_event_name": "preToolUse", "tool_name": "Write",
        "tool_input": {"file_path": "/a", "content": "x"}});
    let parsed = read_json(CodingAgent::Claude, &payload).expect("the editor's spelling");
    assert_eq!((parsed.session.as_str(), parsed.event), ("c", writing_whole(&["/a"])));
}

#[test]
fn the_task_is_one_short_line() {
    let task = |prompt: &str| {
        let payload = json!({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": prompt});
        read_json(CodingAgent::Claude, &payload).expect("a prompt").task
    };
    assert_eq!(task("fix\n\n  the \u{1b}[31m bug\u{202e}\t").as_deref(), Some("fix the [31m bug"));
    assert_eq!(task(&"ä".repeat(500)), Some("ä".repeat(200)));
    assert_eq!(task(&"word ".repeat(500)).map(|task| task.chars().count()), Some(199));
    assert_eq!(task(" \n "), None);
    assert_eq!(task("<task-notification>\n<task-id>a</task-id>"), None);
}

#[test]
fn unknown_events_are_parsed_as_other() {
    for (agent, name) in [
        (CodingAgent::Claude, "PreCompact"),
        (CodingAgent::Codex, "PermissionRequest"),
        (CodingAgent::Gemini, "BeforeModel"),
        (CodingAgent::Cursor, "afterAgentThought"),
    ] {
        let payload =
            json!({"session_id": "s", "hook_event_name": name, "tool_name": "Edit", "tool_input": 7});
        assert_eq!(read_json(agent, &payload).expect(name).event, HookEvent::Other, "{agent} {name}");
    }
    let payload = json!({"event": "todo.updated", "input": {"sessionID": "s"}});
    assert_eq!(read_json(CodingAgent::OpenCode, &payload).expect("an event").event, HookEvent::Other);
}
