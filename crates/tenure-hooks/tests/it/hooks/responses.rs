//! Every verdict in the one form that each agent obeys.

use serde_json::{Value, json};
use tenure_hooks::{HookEvent, HookPayload, HookResponse, HookVerdict, render_response};
use tenure_host::coding_agent::CodingAgent;

use super::{lets_through, paths, payload, writing};

/// What is printed, with standard output as JSON: the order of names means nothing.
type Printed = (Option<Value>, &'static str, u8);

const SILENCE: Printed = (None, "", 0);

fn json_only(value: Value) -> Printed {
    (Some(value), "", 0)
}

fn check(agent: CodingAgent, event: Option<HookEvent>, verdict: &HookVerdict, expected: &Printed) {
    let payload = event.clone().map(|event| HookPayload { event, ..payload() });
    let HookResponse { stdout, stderr, code } = render_response(agent, payload.as_ref(), verdict);
    let stdout = (!stdout.is_empty()).then(|| serde_json::from_str::<Value>(&stdout).expect("JSON"));
    assert_eq!(&(stdout, stderr.as_str(), code), expected, "{agent} {event:?} {verdict:?}");
}

fn allow() -> HookVerdict {
    HookVerdict::Allow { message: None }
}

fn allow_with_message() -> HookVerdict {
    HookVerdict::Allow { message: Some("left dirty".to_owned()) }
}

fn deny(stop: bool) -> HookVerdict {
    HookVerdict::Deny { reason: "held".to_owned(), stop }
}

fn denial() -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "held",
    }})
}

fn context(event: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": "left dirty"}})
}

// S4-19, S4-27, S4-62
#[test]
fn edit_responses_have_each_agents_format() {
    let mut claude_stop = denial();
    claude_stop["continue"] = json!(false);
    claude_stop["stopReason"] = json!("held");
    let gemini = json!({"decision": "deny", "reason": "held"});
    let gemini_stop = json!({"decision": "deny", "reason": "held", "continue": false, "stopReason": "held"});
    let cursor = json!({"permission": "deny", "agent_message": "held", "user_message": "held"});
    let opencode = |stop: bool| json!({"decision": "deny", "reason": "held", "stop": stop});
    let allowed = json!({"permission": "allow"});
    let table = [
        (CodingAgent::Claude, allow(), SILENCE),
        (CodingAgent::Claude, allow_with_message(), json_only(context("PreToolUse"))),
        (CodingAgent::Claude, deny(false), json_only(denial())),
        (CodingAgent::Claude, deny(true), json_only(claude_stop)),
        (CodingAgent::Claude, HookVerdict::Acknowledge, SILENCE),
        (CodingAgent::Codex, allow(), SILENCE),
        (CodingAgent::Codex, allow_with_message(), json_only(context("PreToolUse"))),
        (CodingAgent::Codex, deny(false), json_only(denial())),
        // No hook can end its turn: with `continue: false` the edit would happen.
        (CodingAgent::Codex, deny(true), json_only(denial())),
        (CodingAgent::Codex, HookVerdict::Acknowledge, SILENCE),
        (CodingAgent::Gemini, allow(), SILENCE),
        (CodingAgent::Gemini, allow_with_message(), json_only(json!({"systemMessage": "left dirty"}))),
        (CodingAgent::Gemini, deny(false), json_only(gemini)),
        (CodingAgent::Gemini, deny(true), json_only(gemini_stop)),
        (CodingAgent::Gemini, HookVerdict::Acknowledge, SILENCE),
        (CodingAgent::Cursor, allow(), json_only(allowed.clone())),
        (
            CodingAgent::Cursor,
            allow_with_message(),
            json_only(json!({"permission": "allow", "agent_message": "left dirty"})),
        ),
        (CodingAgent::Cursor, deny(false), json_only(cursor.clone())),
        (CodingAgent::Cursor, deny(true), json_only(cursor)),
        (CodingAgent::Cursor, HookVerdict::Acknowledge, json_only(allowed)),
        (CodingAgent::OpenCode, allow(), json_only(json!({"decision": "allow"}))),
        (
            CodingAgent::OpenCode,
            allow_with_message(),
            json_only(json!({"decision": "allow", "note": "left dirty"})),
        ),
        (CodingAgent::OpenCode, deny(false), json_only(opencode(false))),
        (CodingAgent::OpenCode, deny(true), json_only(opencode(true))),
        (CodingAgent::OpenCode, HookVerdict::Acknowledge, json_only(json!({"decision": "allow"}))),
    ];
    for (agent, verdict, expected) in table {
        check(agent, Some(writing(&["a"])), &verdict, &expected);
    }
}

#[test]
fn denials_of_unparsed_payloads_block() {
    let stopped: Printed = (None, "held", 2);
    let cursor = json!({"permission": "deny", "agent_message": "held", "user_message": "held"});
    for stop in [false, true] {
        for agent in [CodingAgent::Claude, CodingAgent::Codex, CodingAgent::Gemini] {
            check(agent, None, &deny(stop), &stopped);
        }
        check(CodingAgent::Cursor, None, &deny(stop), &(Some(cursor.clone()), "held", 2));
        let opencode = json!({"decision": "deny", "reason": "held", "stop": stop});
        check(CodingAgent::OpenCode, None, &deny(stop), &json_only(opencode));
    }
}

#[test]
fn a_prompt_is_blocked_only_if_denied() {
    let block = json!({"decision": "block", "reason": "held"});
    check(CodingAgent::Claude, Some(HookEvent::Prompted), &deny(false), &json_only(block.clone()));
    check(CodingAgent::Codex, Some(HookEvent::Prompted), &deny(false), &json_only(block));
    let gemini = json!({"decision": "deny", "reason": "held"});
    check(CodingAgent::Gemini, Some(HookEvent::Prompted), &deny(false), &json_only(gemini));
    let cursor = json!({"continue": false, "user_message": "held"});
    check(CodingAgent::Cursor, Some(HookEvent::Prompted), &deny(false), &json_only(cursor));
    check(
        CodingAgent::Cursor,
        Some(HookEvent::Prompted),
        &HookVerdict::Acknowledge,
        &json_only(json!({"continue": true})),
    );
    for agent in [CodingAgent::Claude, CodingAgent::Codex, CodingAgent::Gemini] {
        check(agent, Some(HookEvent::Prompted), &HookVerdict::Acknowledge, &SILENCE);
    }
}

#[test]
fn denials_at_the_end_of_a_turn_do_not_start_another_turn() {
    // A block there is an endless loop in Codex, and eight more turns in Claude.
    let after_events = [
        HookEvent::Started,
        HookEvent::AfterWrite { paths: paths(&["a"]), failed: false },
        HookEvent::TurnEnded { still_working: false },
        HookEvent::SubagentEnded,
        HookEvent::Ended { reason: "exit".to_owned() },
    ];
    for event in after_events {
        for agent in [CodingAgent::Claude, CodingAgent::Codex, CodingAgent::Gemini] {
            check(agent, Some(event.clone()), &deny(true), &(None, "held", 0));
            check(agent, Some(event.clone()), &HookVerdict::Acknowledge, &SILENCE);
        }
        check(CodingAgent::Cursor, Some(event.clone()), &deny(true), &(Some(json!({})), "held", 0));
        check(CodingAgent::Cursor, Some(event.clone()), &HookVerdict::Acknowledge, &json_only(json!({})));
        check(
            CodingAgent::OpenCode,
            Some(event),
            &HookVerdict::Acknowledge,
            &json_only(json!({"decision": "allow"})),
        );
    }
}

#[test]
fn messages_are_sent_only_where_the_event_accepts_them() {
    let notes = [
        (HookEvent::Started, Some("SessionStart")),
        (HookEvent::Prompted, Some("UserPromptSubmit")),
        (HookEvent::AfterWrite { paths: paths(&["a"]), failed: false }, Some("PostToolUse")),
        (HookEvent::AfterWrite { paths: paths(&["a"]), failed: true }, None),
        (HookEvent::AfterRead { paths: paths(&["a"]) }, Some("PostToolUse")),
        (HookEvent::Other, None),
        (HookEvent::TurnEnded { still_working: true }, None),
    ];
    for (event, name) in notes {
        let expected = name.map_or(SILENCE, |name| json_only(context(name)));
        for agent in [CodingAgent::Claude, CodingAgent::Codex] {
            check(agent, Some(event.clone()), &allow_with_message(), &expected);
        }
    }
    check(
        CodingAgent::Cursor,
        Some(HookEvent::Started),
        &allow_with_message(),
        &json_only(json!({"additional_context": "left dirty"})),
    );
}

// S4-19
#[test]
fn no_denial_of_any_kind_lets_an_edit_through() {
    // A tool that nobody knows, a file, or nothing that was understood; with a reason and without one.
    let events = [Some(writing(&["a"])), Some(HookEvent::BeforeToolCall), Some(HookEvent::Other), None];
    for agent in CodingAgent::ALL {
        for event in &events {
            for (reason, stop) in [("held", false), ("held", true), ("", false), (" \n", true)] {
                let payload = event.clone().map(|event| HookPayload { event, ..payload() });
                let verdict = HookVerdict::Deny { reason: reason.to_owned(), stop };
                let answer = render_response(agent, payload.as_ref(), &verdict);
                assert!(!lets_through(agent, &answer), "{agent} {event:?} {verdict:?} {answer:?}");
            }
        }
    }
}

#[test]
fn allowing_never_approves_on_behalf_of_the_user() {
    for agent in [CodingAgent::Claude, CodingAgent::Codex, CodingAgent::Gemini] {
        for verdict in [allow(), allow_with_message(), HookVerdict::Acknowledge] {
            let payload = HookPayload { event: writing(&["a"]), ..payload() };
            let answer = render_response(agent, Some(&payload), &verdict);
            assert!(lets_through(agent, &answer), "{agent} {verdict:?}");
            assert!(!answer.stdout.contains("allow"), "{agent} {verdict:?}");
        }
    }
}
