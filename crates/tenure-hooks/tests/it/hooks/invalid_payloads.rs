//! What cannot be understood is denied, in each agent's own form, and nothing of it is repeated.

use serde_json::{Value, json};
use tenure_hooks::{
    HookEvent, MAX_PATHS, MAX_PAYLOAD_BYTES, PayloadError, PayloadErrorKind, parse_payload, reject_payload,
};
use tenure_host::coding_agent::CodingAgent;

use super::{before, edit, lets_through, paths, read_json};

const SECRET: &str = "sk-very-secret";

/// Whatever `agent` said was not understood, is not repeated, and the edit does not happen.
fn denied(agent: CodingAgent, bytes: &[u8], what: &str) -> PayloadError {
    let unheard = parse_payload(agent, bytes).expect_err(what);
    let answer = reject_payload(agent, &unheard);
    assert!(unheard.is_pre_tool_use(), "{agent}: {what}");
    assert!(!lets_through(agent, &answer), "{agent}: {what}: {answer:?}");
    assert!(!format!("{answer:?} {unheard}").contains(SECRET), "{agent}: {what}: {answer:?}");
    unheard
}

fn denied_json(agent: CodingAgent, payload: &Value, what: &str) -> PayloadError {
    denied(agent, payload.to_string().as_bytes(), what)
}

/// What `agent` says before an edit.
fn good(agent: CodingAgent) -> Value {
    let (tool, input) = edit(agent);
    before(agent, tool, &input)
}

/// Where an agent has its session, its event, its tool and what the tool is given.
fn places(agent: CodingAgent) -> [&'static str; 4] {
    match agent {
        CodingAgent::Claude | CodingAgent::Codex | CodingAgent::Gemini => {
            ["/session_id", "/hook_event_name", "/tool_name", "/tool_input"]
        }
        CodingAgent::Cursor => ["/conversation_id", "/hook_event_name", "/tool_name", "/tool_input"],
        CodingAgent::OpenCode => ["/input/sessionID", "/event", "/input/tool", "/output/args"],
    }
}

fn with(agent: CodingAgent, place: &str, value: Value) -> Value {
    let mut payload = good(agent);
    *payload.pointer_mut(place).expect("the place") = value;
    payload
}

fn without(agent: CodingAgent, place: &str) -> Value {
    let mut payload = good(agent);
    let (parent, name) = place.rsplit_once('/').expect("a place");
    payload.pointer_mut(parent).expect("the parent").as_object_mut().expect("an object").remove(name);
    payload
}

// S4-15
#[test]
fn payloads_that_are_not_json_are_denied() {
    for agent in CodingAgent::ALL {
        assert!(read_json(agent, &good(agent)).is_ok(), "{agent}");
        let text = good(agent).to_string();
        let cut = &text.as_bytes()[..text.len() - 1];
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let deep_inside = format!("{{\"a\":{}1{}}}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
        let plain = format!("please edit {SECRET}");
        assert_eq!(denied(agent, b"", "nothing").kind(), &PayloadErrorKind::Empty);
        assert_eq!(denied(agent, b" \n\t", "blanks").kind(), &PayloadErrorKind::Empty);
        assert_eq!(denied(agent, b"\xff{}", "no text").kind(), &PayloadErrorKind::NotText);
        assert!(matches!(
            denied(agent, plain.as_bytes(), "no JSON").kind(),
            PayloadErrorKind::NotJson { .. }
        ));
        assert!(matches!(denied(agent, cut, "cut").kind(), PayloadErrorKind::NotJson { .. }));
        assert!(matches!(denied(agent, deep.as_bytes(), "deep").kind(), PayloadErrorKind::NotJson { .. }));
        assert!(matches!(
            denied(agent, deep_inside.as_bytes(), "deep").kind(),
            PayloadErrorKind::NotJson { .. }
        ));
        for text in ["null", "7", "\"x\"", "[{}]"] {
            assert_eq!(denied(agent, text.as_bytes(), text).kind(), &PayloadErrorKind::NotAnObject);
        }
        assert!(matches!(
            denied(agent, format!("{text}{text}").as_bytes(), "two").kind(),
            PayloadErrorKind::NotJson { .. }
        ));
        denied(agent, b"{}", "nothing in it");
    }
}

#[test]
fn payloads_that_are_too_large_are_denied() {
    for agent in CodingAgent::ALL {
        let mut text = good(agent).to_string();
        text.push_str(&" ".repeat(MAX_PAYLOAD_BYTES - text.len()));
        assert!(parse_payload(agent, text.as_bytes()).is_ok(), "{agent}");
        text.push(' ');
        assert_eq!(denied(agent, text.as_bytes(), "one byte too many").kind(), &PayloadErrorKind::TooLarge);
    }
    let many = format!("[{}0]", "0,".repeat(1_000_000));
    let payload = good(CodingAgent::Claude).to_string().replacen('{', &format!("{{\"many\":{many},"), 1);
    assert_eq!(
        denied(CodingAgent::Claude, payload.as_bytes(), "many values").kind(),
        &PayloadErrorKind::TooLarge
    );
}

#[test]
fn duplicate_names_are_denied() {
    for agent in CodingAgent::ALL {
        for place in places(agent) {
            let name = place.rsplit('/').next().expect("a name");
            for value in ["null", "\"Read\"", "{}"] {
                let text = good(agent).to_string().replacen(
                    &format!("\"{name}\":"),
                    &format!("\"{name}\":{value},\"{name}\":"),
                    1,
                );
                let unheard = denied(agent, text.as_bytes(), &format!("{name} twice"));
                assert!(
                    matches!(unheard.kind(), PayloadErrorKind::DuplicateName { .. }),
                    "{agent} {name}: {unheard}"
                );
            }
        }
    }
    let payload = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Edit",
        "tool_input":{"file_path":"/a","file_path":"/b"}}"#;
    assert!(matches!(
        denied(CodingAgent::Claude, payload.as_bytes(), "inside").kind(),
        PayloadErrorKind::DuplicateName { .. }
    ));
}

// S4-15
#[test]
fn missing_and_mistyped_fields_are_denied() {
    let wrong = [json!(7), json!(true), json!([SECRET]), json!(SECRET), json!({"x": SECRET})];
    for agent in CodingAgent::ALL {
        for (index, place) in places(agent).into_iter().enumerate() {
            // OpenCode's payload shows what it is without its name too.
            if (agent, index) != (CodingAgent::OpenCode, 1) {
                denied_json(agent, &without(agent, place), place);
                denied_json(agent, &with(agent, place, Value::Null), place);
            }
            for value in &wrong {
                // A text is right everywhere but where the tool's input stands, and then something else is said.
                if value.is_string() && index < 3 {
                    continue;
                }
                denied_json(agent, &with(agent, place, value.clone()), place);
            }
        }
    }
}

#[test]
fn invalid_ids_are_denied() {
    for agent in CodingAgent::ALL {
        let place = places(agent)[0];
        let long = "x".repeat(129);
        for id in ["", "a\u{0}b", "a\nb", "a\u{1b}[31m", "a\u{85}b", "a\u{202e}b", long.as_str()] {
            let unheard = denied_json(agent, &with(agent, place, json!(id)), id);
            assert!(matches!(unheard.kind(), PayloadErrorKind::BadId(_)), "{agent} {id:?}: {unheard}");
        }
        let longest = "x".repeat(128);
        let payload = read_json(agent, &with(agent, place, json!(longest))).expect("the longest id");
        assert_eq!(payload.session, longest);
    }
    let mut payload = good(CodingAgent::Claude);
    payload["agent_id"] = json!("a\nb");
    assert_eq!(
        denied_json(CodingAgent::Claude, &payload, "subagent").kind(),
        &PayloadErrorKind::BadId("agent_id")
    );
}

#[test]
fn invalid_folders_are_denied() {
    for agent in CodingAgent::ALL {
        let name = if agent == CodingAgent::OpenCode { "directory" } else { "cwd" };
        for folder in [json!("repo"), json!("/re\u{0}po"), json!(7), json!(["/repo"])] {
            let mut payload = good(agent);
            payload[name] = folder.clone();
            denied_json(agent, &payload, &format!("{name} {folder}"));
        }
    }
}

#[test]
fn paths_may_contain_newlines_but_not_nul() {
    let name = |agent| if agent == CodingAgent::OpenCode { "filePath" } else { "file_path" };
    for agent in [CodingAgent::Claude, CodingAgent::Gemini, CodingAgent::Cursor, CodingAgent::OpenCode] {
        let tool = edit(agent).0;
        let payload = |path: &Value| before(agent, tool, &json!({name(agent): path}));
        for path in [json!("/repo/a\u{0}b"), json!(""), json!("\u{0}")] {
            assert_eq!(
                denied_json(agent, &payload(&path), "path").kind(),
                &PayloadErrorKind::BadPath,
                "{agent} {path}"
            );
        }
        for path in [json!(7), json!({"path": "/a"}), json!(["/a"])] {
            let unheard = denied_json(agent, &payload(&path), "path");
            assert!(matches!(unheard.kind(), PayloadErrorKind::WrongType(_)), "{agent} {path}: {unheard}");
        }
        assert_eq!(
            denied_json(agent, &before(agent, tool, &json!({})), "no path").kind(),
            &PayloadErrorKind::NoPath
        );
        let odd = "/repo/a\nb \t\u{202e}c.txt";
        let parsed = read_json(agent, &payload(&json!(odd))).expect("an odd path");
        assert_eq!(parsed.event, HookEvent::BeforeWrite { paths: paths(&[odd]), replaces_content: false });
    }
}

#[test]
fn more_than_a_thousand_files_are_denied() {
    let patch = |files: usize| {
        let headers: String = (0..files).map(|file| format!("*** Delete File: f{file}\n")).collect();
        format!("*** Begin Patch\n{headers}*** End Patch\n")
    };
    for (agent, tool, name) in
        [(CodingAgent::Codex, "apply_patch", "command"), (CodingAgent::OpenCode, "apply_patch", "patchText")]
    {
        let parsed =
            read_json(agent, &before(agent, tool, &json!({name: patch(MAX_PATHS)}))).expect("a thousand");
        assert!(matches!(parsed.event, HookEvent::BeforeWrite { paths, .. } if paths.len() == MAX_PATHS));
        let unheard =
            denied_json(agent, &before(agent, tool, &json!({name: patch(MAX_PATHS + 1)})), "one more");
        assert_eq!(unheard.kind(), &PayloadErrorKind::TooManyPaths);
    }
    let shell = format!("apply_patch <<'EOF'\n{}EOF", patch(MAX_PATHS + 1));
    denied_json(
        CodingAgent::Codex,
        &before(CodingAgent::Codex, "Bash", &json!({"command": shell})),
        "in a shell",
    );
    let edits: Vec<Value> = (0..=MAX_PATHS).map(|file| json!({"filePath": format!("f{file}")})).collect();
    denied_json(
        CodingAgent::OpenCode,
        &before(CodingAgent::OpenCode, "multiedit", &json!({"edits": edits})),
        "edits",
    );
}

#[test]
fn malformed_events_without_a_permission_decision_block_nothing() {
    let stop = json!({"hook_event_name": "Stop", "cwd": "/repo"});
    for agent in [CodingAgent::Claude, CodingAgent::Codex] {
        let unheard = read_json(agent, &stop).expect_err("no session");
        let answer = reject_payload(agent, &unheard);
        assert!(!unheard.is_pre_tool_use());
        assert_eq!((answer.stdout.as_str(), answer.code), ("", 0));
        assert_eq!(
            answer.stderr,
            "Tenure did not understand this event: `session_id` is missing. It asks nothing, so nothing was stopped."
        );
    }
    let unheard =
        read_json(CodingAgent::Cursor, &json!({"hook_event_name": "stop"})).expect_err("no session");
    assert_eq!(reject_payload(CodingAgent::Cursor, &unheard).stdout, "{}");
    let unheard = read_json(CodingAgent::OpenCode, &json!({"event": "session.idle", "input": {}}))
        .expect_err("no session");
    assert_eq!(reject_payload(CodingAgent::OpenCode, &unheard).stdout, r#"{"decision":"allow"}"#);
}

#[test]
fn lone_surrogates_are_denied_only_in_paths_and_ids() {
    let text = |path: &str, content: &str| {
        format!(
            r#"{{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Write",
                "tool_input":{{"file_path":"{path}","content":"{content}"}}}}"#
        )
    };
    for content in [r"cut \ud83d", r"\udc00 cut", r"\ud83d\ud83d\ude00", r"\\ud83d \ud83d\ude00 \ud83dx"] {
        let parsed = parse_payload(CodingAgent::Claude, text("/repo/a", content).as_bytes()).expect(content);
        assert_eq!(
            parsed.event,
            HookEvent::BeforeWrite { paths: paths(&["/repo/a"]), replaces_content: true },
            "{content}"
        );
    }
    let parsed = parse_payload(CodingAgent::Claude, text(r"/repo/\ud83d\ude00", "").as_bytes())
        .expect("a whole character");
    assert_eq!(parsed.event, HookEvent::BeforeWrite { paths: paths(&["/repo/😀"]), replaces_content: true });
    // Which file is meant can no longer be said.
    let unheard = denied(CodingAgent::Claude, text(r"/repo/\ud83d", "").as_bytes(), "half a path");
    assert_eq!(unheard.kind(), &PayloadErrorKind::BadPath);
    for (name, wrong) in
        [("cwd", PayloadErrorKind::BadFolder("cwd")), ("agent_id", PayloadErrorKind::BadId("agent_id"))]
    {
        let beside = format!(r#"{{"{name}":"/\ud83d","#);
        let payload = text("/repo/a", "").replacen('{', &beside, 1);
        assert_eq!(denied(CodingAgent::Claude, payload.as_bytes(), name).kind(), &wrong);
    }
}
