//! What each agent says to its hook before a write, and at the end of a session.

use std::path::Path;

use serde_json::{Value, json};
use tenure_gate::agent::Agent;

/// The events of an agent that a canary needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Events {
    pub before: &'static str,
    pub end: &'static str,
}

/// What they are called in its settings, which is what it says to its hooks too.
pub const fn events(agent: Agent) -> Events {
    match agent {
        Agent::Claude | Agent::Codex => Events { before: "PreToolUse", end: "SessionEnd" },
        Agent::Gemini => Events { before: "BeforeTool", end: "SessionEnd" },
        Agent::Cursor => Events { before: "preToolUse", end: "sessionEnd" },
        Agent::OpenCode => Events { before: "tool.execute.before", end: "session.deleted" },
    }
}

/// This session is about to write this new file.
pub fn writing(agent: Agent, session: &str, root: &Path, file: &Path) -> Value {
    let mut said = frame(agent, session, root, events(agent).before);
    let (tool, input) = match agent {
        Agent::Claude => ("Write", json!({"file_path": file, "content": "canary\n"})),
        Agent::Codex => {
            let patch =
                format!("*** Begin Patch\n*** Add File: {}\n+canary\n*** End Patch\n", file.display());
            ("apply_patch", json!({"command": patch}))
        }
        Agent::Gemini => ("write_file", json!({"file_path": file, "content": "canary\n"})),
        Agent::Cursor => ("Write", json!({"file_path": file, "contents": "canary\n"})),
        Agent::OpenCode => {
            said["input"] = json!({"tool": "write", "sessionID": session, "callID": "call_doctor"});
            said["output"] = json!({"args": {"filePath": file, "content": "canary\n"}});
            return said;
        }
    };
    said["tool_name"] = json!(tool);
    said["tool_input"] = input;
    if agent != Agent::Gemini {
        said["tool_use_id"] = json!("call_doctor");
    }
    said
}

pub fn ending(agent: Agent, session: &str, root: &Path) -> Value {
    let mut said = frame(agent, session, root, events(agent).end);
    match agent {
        Agent::OpenCode => {
            said["input"] = json!({"type": "session.deleted", "properties": {"info": {"id": session}}});
        }
        _ => said["reason"] = json!("other"),
    }
    said
}

fn frame(agent: Agent, session: &str, root: &Path, event: &str) -> Value {
    match agent {
        Agent::OpenCode => json!({"event": event, "directory": root}),
        Agent::Cursor => json!({
            "conversation_id": session, "generation_id": "doctor", "hook_event_name": event, "workspace_roots": [root],
            "cwd": root,
        }),
        Agent::Claude | Agent::Codex | Agent::Gemini => {
            json!({"session_id": session, "transcript_path": "", "cwd": root, "hook_event_name": event})
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_gate::hooks::{Event, read};

    use super::*;

    #[test]
    fn generated_payloads_are_parsed_like_the_agents_own() {
        let (root, file) = (Path::new("/repo"), Path::new("/repo/.tenure-canary-1"));
        for agent in Agent::ALL {
            let heard = read(agent, writing(agent, "s1", root, file).to_string().as_bytes()).unwrap();
            assert_eq!(heard.session, "s1", "{agent}");
            let Event::Writing { paths, .. } = heard.event else { panic!("{agent}: {heard:?}") };
            assert_eq!(paths, [file], "{agent}");
            let heard = read(agent, ending(agent, "s1", root).to_string().as_bytes()).unwrap();
            assert!(matches!(heard.event, Event::Ended { .. }), "{agent}: {heard:?}");
            assert_eq!(heard.session, "s1", "{agent}");
        }
    }

    #[test]
    fn generated_payloads_use_only_fields_of_recorded_payloads() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tenure-gate/tests/fixtures/hooks");
        for (agent, name) in [
            (Agent::Claude, "claude-PreToolUse-Write"),
            (Agent::Codex, "codex-PreToolUse-apply_patch-add"),
            (Agent::Gemini, "gemini-BeforeTool-write_file"),
        ] {
            let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
            let real: Value = serde_json::from_str(&text).unwrap();
            let ours = writing(agent, "s1", Path::new("/repo"), Path::new("/repo/c.txt"));
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
