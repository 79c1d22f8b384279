//! What each agent says to its hook before a write, and at the end of a session.

use std::path::Path;

use serde_json::{Value, json};
use tenure_gate::coding_agent::CodingAgent;

/// The events of an agent that a canary needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookEventNames {
    pub before: &'static str,
    pub end: &'static str,
}

/// What they are called in its settings, which is what it says to its hooks too.
pub const fn event_names(agent: CodingAgent) -> HookEventNames {
    match agent {
        CodingAgent::Claude | CodingAgent::Codex => {
            HookEventNames { before: "PreToolUse", end: "SessionEnd" }
        }
        CodingAgent::Gemini => HookEventNames { before: "BeforeTool", end: "SessionEnd" },
        CodingAgent::Cursor => HookEventNames { before: "preToolUse", end: "sessionEnd" },
        CodingAgent::OpenCode => HookEventNames { before: "tool.execute.before", end: "session.deleted" },
    }
}

/// This session is about to write this new file.
pub fn write_payload(agent: CodingAgent, session: &str, root: &Path, file: &Path) -> Value {
    let mut payload = frame(agent, session, root, event_names(agent).before);
    let (tool, input) = match agent {
        CodingAgent::Claude => ("Write", json!({"file_path": file, "content": "canary\n"})),
        CodingAgent::Codex => {
            let patch =
                format!("*** Begin Patch\n*** Add File: {}\n+canary\n*** End Patch\n", file.display());
            ("apply_patch", json!({"command": patch}))
        }
        CodingAgent::Gemini => ("write_file", json!({"file_path": file, "content": "canary\n"})),
        CodingAgent::Cursor => ("Write", json!({"file_path": file, "contents": "canary\n"})),
        CodingAgent::OpenCode => {
            payload["input"] = json!({"tool": "write", "sessionID": session, "callID": "call_doctor"});
            payload["output"] = json!({"args": {"filePath": file, "content": "canary\n"}});
            return payload;
        }
    };
    payload["tool_name"] = json!(tool);
    payload["tool_input"] = input;
    if agent != CodingAgent::Gemini {
        payload["tool_use_id"] = json!("call_doctor");
    }
    payload
}

pub fn session_end_payload(agent: CodingAgent, session: &str, root: &Path) -> Value {
    let mut payload = frame(agent, session, root, event_names(agent).end);
    match agent {
        CodingAgent::OpenCode => {
            payload["input"] = json!({"type": "session.deleted", "properties": {"info": {"id": session}}});
        }
        _ => payload["reason"] = json!("other"),
    }
    payload
}

fn frame(agent: CodingAgent, session: &str, root: &Path, event: &str) -> Value {
    match agent {
        CodingAgent::OpenCode => json!({"event": event, "directory": root}),
        CodingAgent::Cursor => json!({
            "conversation_id": session, "generation_id": "doctor", "hook_event_name": event, "workspace_roots": [root],
            "cwd": root,
        }),
        CodingAgent::Claude | CodingAgent::Codex | CodingAgent::Gemini => {
            json!({"session_id": session, "transcript_path": "", "cwd": root, "hook_event_name": event})
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_gate::hooks::{HookEvent, parse_payload};

    use super::*;

    #[test]
    fn generated_payloads_are_parsed_like_the_agents_own() {
        let (root, file) = (Path::new("/repo"), Path::new("/repo/.tenure-canary-1"));
        for agent in CodingAgent::ALL {
            let parsed =
                parse_payload(agent, write_payload(agent, "s1", root, file).to_string().as_bytes()).unwrap();
            assert_eq!(parsed.session, "s1", "{agent}");
            let HookEvent::BeforeWrite { paths, .. } = parsed.event else { panic!("{agent}: {parsed:?}") };
            assert_eq!(paths, [file], "{agent}");
            let ended =
                parse_payload(agent, session_end_payload(agent, "s1", root).to_string().as_bytes()).unwrap();
            assert!(matches!(ended.event, HookEvent::Ended { .. }), "{agent}: {ended:?}");
            assert_eq!(ended.session, "s1", "{agent}");
        }
    }

    #[test]
    fn generated_payloads_use_only_fields_of_recorded_payloads() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tenure-gate/tests/fixtures/hooks");
        for (agent, name) in [
            (CodingAgent::Claude, "claude-PreToolUse-Write"),
            (CodingAgent::Codex, "codex-PreToolUse-apply_patch-add"),
            (CodingAgent::Gemini, "gemini-BeforeTool-write_file"),
        ] {
            let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
            let real: Value = serde_json::from_str(&text).unwrap();
            let ours = write_payload(agent, "s1", Path::new("/repo"), Path::new("/repo/c.txt"));
            for (place, ours, real) in [("", &ours, &real), ("in ", &ours["tool_input"], &real["tool_input"])]
            {
                for key in ours.as_object().unwrap().keys() {
                    assert!(real.get(key).is_some(), "{agent}: {place}{key}");
                }
            }
            assert_eq!(ours["tool_name"], real["tool_name"]);
        }
    }
}
