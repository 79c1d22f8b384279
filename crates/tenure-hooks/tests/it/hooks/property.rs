//! Whatever comes: no crash, and no edit without a lease.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tenure_hooks::{HookEvent, HookVerdict, MAX_PATHS, parse_payload, reject_payload, render_response};
use tenure_host::coding_agent::CodingAgent;

use super::{before, edit, lets_through};

/// Whether the agent could edit after `bytes` although everybody is denied.
fn could_edit(agent: CodingAgent, bytes: &[u8]) -> bool {
    let denial = HookVerdict::Deny { reason: "held".to_owned(), stop: true };
    match parse_payload(agent, bytes) {
        Err(unheard) => {
            let text = format!("{unheard}");
            assert!(!text.is_empty() && text.len() < 200);
            lets_through(agent, &reject_payload(agent, &unheard))
        }
        Ok(payload) => {
            if let HookEvent::BeforeWrite { paths, .. } = &payload.event {
                assert!((1..=MAX_PATHS).contains(&paths.len()));
            }
            assert!((1..=128).contains(&payload.session.len()));
            assert!(payload.task.as_ref().is_none_or(|task| task.chars().count() <= 200));
            !matches!(payload.event, HookEvent::BeforeWrite { .. })
                || lets_through(agent, &render_response(agent, Some(&payload), &denial))
        }
    }
}

/// Names that agents use, so that something is understood at times.
const NAMES: [&str; 22] = [
    "session_id",
    "conversation_id",
    "cwd",
    "hook_event_name",
    "tool_name",
    "tool_input",
    "tool_use_id",
    "agent_id",
    "file_path",
    "filePath",
    "path",
    "command",
    "patchText",
    "edits",
    "event",
    "type",
    "properties",
    "input",
    "output",
    "args",
    "sessionID",
    "tool",
];

const TEXTS: [&str; 16] = [
    "PreToolUse",
    "PostToolUse",
    "BeforeTool",
    "preToolUse",
    "beforeMCPExecution",
    "tool.execute.before",
    "session.idle",
    "Edit",
    "Write",
    "Bash",
    "apply_patch",
    "s",
    "/repo/a",
    "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch",
    "cd $X && apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\nEOF",
    "apply_patch",
];

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        3 => prop::sample::select(&TEXTS[..]).prop_map(str::to_owned),
        1 => ".{0,40}",
        1 => r#"[a-z $`'"\\;&|()<>#{}\n]{0,40}"#,
    ];
    let leaf = prop_oneof![
        4 => text.prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 32, 6, |element| {
        let name = prop_oneof![4 => prop::sample::select(&NAMES[..]).prop_map(str::to_owned), 1 => ".{0,10}"];
        prop_oneof![
            1 => vec(element.clone(), 0..4).prop_map(Value::from),
            3 => vec((name, element), 0..6).prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn any_agent() -> impl Strategy<Value = CodingAgent> {
    prop::sample::select(&CodingAgent::ALL[..])
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_and_never_allow_an_edit(agent in any_agent(), bytes in vec(any::<u8>(), 0..200)) {
        // Nothing of this kind says that it stands before a call; what cannot be read is denied all the same.
        prop_assert!(parse_payload(agent, &bytes).is_ok() || !could_edit(agent, &bytes));
    }

    #[test]
    fn arbitrary_json_never_panics(agent in any_agent(), value in any_value()) {
        could_edit(agent, value.to_string().as_bytes());
    }

    // S4-15
    #[test]
    fn extra_fields_never_allow_a_denied_edit(
        agent in any_agent(),
        input in any_value(),
        more in vec((prop::sample::select(&NAMES[..]), any_value()), 0..6),
    ) {
        let mut payload = before(agent, edit(agent).0, &input);
        // What says that it stands before an edit stays; everything else is as it comes.
        let kept: &[&str] = match agent {
            CodingAgent::OpenCode => &["event", "input", "output"],
            _ => &["hook_event_name", "tool_name", "tool_input"],
        };
        let fields = payload.as_object_mut().expect("an object");
        for (name, value) in more.into_iter().filter(|(name, _)| !kept.contains(name)) {
            fields.insert(name.to_owned(), value);
        }
        prop_assert!(!could_edit(agent, payload.to_string().as_bytes()), "{agent} {payload}");
    }

    // S4-15
    #[test]
    fn damaged_payloads_never_allow_a_denied_edit(agent in any_agent(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (tool, input) = edit(agent);
        let good = before(agent, tool, &input).to_string().into_bytes();
        let cut = &good[..at.index(good.len())];
        prop_assert!(!could_edit(agent, cut));
        let mut damaged = good.clone();
        *at.get_mut(&mut damaged) = byte;
        // Another event or another tool may be what stands there now; everything else is still that edit.
        let text = String::from_utf8_lossy(&damaged).into_owned();
        let says = |name: &str| text.contains(&format!("\"{name}\""));
        let event = ["PreToolUse", "BeforeTool", "preToolUse", "tool.execute.before"].iter().any(|name| says(name));
        let names = ["hook_event_name", "event"].iter().any(|name| says(name));
        if event && names && says(tool) && (says("tool_name") || says("tool")) {
            prop_assert!(!could_edit(agent, &damaged), "{agent} {text}");
        }
    }

    // S4-15
    #[test]
    fn surrounding_shell_code_never_hides_the_file_of_a_patch(before_it in r#"[a-z ;&|()'"$`\\{}\n]{0,30}"#, after_it in r#"[a-z ;&|()'"$`\\{}\n]{0,30}"#) {
        let command = format!(
            "{before_it}\napply_patch <<'EOF'\n*** Begin Patch\n*** Update File: the/file\n-a\n+b\n*** End Patch\nEOF\n{after_it}"
        );
        let payload = before(CodingAgent::Codex, "Bash", &json!({"command": command}));
        match parse_payload(CodingAgent::Codex, payload.to_string().as_bytes()) {
            Err(unheard) => prop_assert!(unheard.is_pre_tool_use()),
            Ok(payload) => {
                let HookEvent::BeforeWrite { paths, .. } = payload.event else {
                    panic!("{command} is {:?}", payload.event)
                };
                prop_assert!(paths.iter().any(|path| path.ends_with("the/file")), "{command}: {paths:?}");
            }
        }
    }
}
