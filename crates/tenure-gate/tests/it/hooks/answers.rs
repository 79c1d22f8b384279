//! Every verdict in the one form that each agent obeys.

use serde_json::{Value, json};
use tenure_gate::agent::Agent;
use tenure_gate::hooks::{Answer, Event, Heard, Verdict, answer};

use super::{heard, lets_through, paths, writing};

/// What is printed, with standard output as JSON: the order of names means nothing.
type Printed = (Option<Value>, &'static str, u8);

const SILENCE: Printed = (None, "", 0);

fn json_only(value: Value) -> Printed {
    (Some(value), "", 0)
}

fn check(agent: Agent, event: Option<Event>, verdict: &Verdict, expected: &Printed) {
    let heard = event.clone().map(|event| Heard { event, ..heard() });
    let Answer { stdout, stderr, code } = answer(agent, heard.as_ref(), verdict);
    let stdout = (!stdout.is_empty()).then(|| serde_json::from_str::<Value>(&stdout).expect("JSON"));
    assert_eq!(&(stdout, stderr.as_str(), code), expected, "{agent} {event:?} {verdict:?}");
}

fn allow() -> Verdict {
    Verdict::Allow { note: None }
}

fn allow_with_note() -> Verdict {
    Verdict::Allow { note: Some("left dirty".to_owned()) }
}

fn deny(stop: bool) -> Verdict {
    Verdict::Deny { reason: "held".to_owned(), stop }
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
        (Agent::Claude, allow(), SILENCE),
        (Agent::Claude, allow_with_note(), json_only(context("PreToolUse"))),
        (Agent::Claude, deny(false), json_only(denial())),
        (Agent::Claude, deny(true), json_only(claude_stop)),
        (Agent::Claude, Verdict::Noted, SILENCE),
        (Agent::Codex, allow(), SILENCE),
        (Agent::Codex, allow_with_note(), json_only(context("PreToolUse"))),
        (Agent::Codex, deny(false), json_only(denial())),
        // No hook can end its turn: with `continue: false` the edit would happen.
        (Agent::Codex, deny(true), json_only(denial())),
        (Agent::Codex, Verdict::Noted, SILENCE),
        (Agent::Gemini, allow(), SILENCE),
        (Agent::Gemini, allow_with_note(), json_only(json!({"systemMessage": "left dirty"}))),
        (Agent::Gemini, deny(false), json_only(gemini)),
        (Agent::Gemini, deny(true), json_only(gemini_stop)),
        (Agent::Gemini, Verdict::Noted, SILENCE),
        (Agent::Cursor, allow(), json_only(allowed.clone())),
        (
            Agent::Cursor,
            allow_with_note(),
            json_only(json!({"permission": "allow", "agent_message": "left dirty"})),
        ),
        (Agent::Cursor, deny(false), json_only(cursor.clone())),
        (Agent::Cursor, deny(true), json_only(cursor)),
        (Agent::Cursor, Verdict::Noted, json_only(allowed)),
        (Agent::OpenCode, allow(), json_only(json!({"decision": "allow"}))),
        (Agent::OpenCode, allow_with_note(), json_only(json!({"decision": "allow", "note": "left dirty"}))),
        (Agent::OpenCode, deny(false), json_only(opencode(false))),
        (Agent::OpenCode, deny(true), json_only(opencode(true))),
        (Agent::OpenCode, Verdict::Noted, json_only(json!({"decision": "allow"}))),
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
        for agent in [Agent::Claude, Agent::Codex, Agent::Gemini] {
            check(agent, None, &deny(stop), &stopped);
        }
        check(Agent::Cursor, None, &deny(stop), &(Some(cursor.clone()), "held", 2));
        let opencode = json!({"decision": "deny", "reason": "held", "stop": stop});
        check(Agent::OpenCode, None, &deny(stop), &json_only(opencode));
    }
}

#[test]
fn a_prompt_is_blocked_only_if_denied() {
    let block = json!({"decision": "block", "reason": "held"});
    check(Agent::Claude, Some(Event::Prompted), &deny(false), &json_only(block.clone()));
    check(Agent::Codex, Some(Event::Prompted), &deny(false), &json_only(block));
    let gemini = json!({"decision": "deny", "reason": "held"});
    check(Agent::Gemini, Some(Event::Prompted), &deny(false), &json_only(gemini));
    let cursor = json!({"continue": false, "user_message": "held"});
    check(Agent::Cursor, Some(Event::Prompted), &deny(false), &json_only(cursor));
    check(Agent::Cursor, Some(Event::Prompted), &Verdict::Noted, &json_only(json!({"continue": true})));
    for agent in [Agent::Claude, Agent::Codex, Agent::Gemini] {
        check(agent, Some(Event::Prompted), &Verdict::Noted, &SILENCE);
    }
}

#[test]
fn denials_at_the_end_of_a_turn_do_not_start_another_turn() {
    // A block there is an endless loop in Codex, and eight more turns in Claude.
    let over = [
        Event::Started,
        Event::Wrote { paths: paths(&["a"]), failed: false },
        Event::TurnEnded { still_working: false },
        Event::SubagentEnded,
        Event::Ended { reason: "exit".to_owned() },
    ];
    for event in over {
        for agent in [Agent::Claude, Agent::Codex, Agent::Gemini] {
            check(agent, Some(event.clone()), &deny(true), &(None, "held", 0));
            check(agent, Some(event.clone()), &Verdict::Noted, &SILENCE);
        }
        check(Agent::Cursor, Some(event.clone()), &deny(true), &(Some(json!({})), "held", 0));
        check(Agent::Cursor, Some(event.clone()), &Verdict::Noted, &json_only(json!({})));
        check(Agent::OpenCode, Some(event), &Verdict::Noted, &json_only(json!({"decision": "allow"})));
    }
}

#[test]
fn messages_are_sent_only_where_the_event_accepts_them() {
    let notes = [
        (Event::Started, Some("SessionStart")),
        (Event::Prompted, Some("UserPromptSubmit")),
        (Event::Wrote { paths: paths(&["a"]), failed: false }, Some("PostToolUse")),
        (Event::Wrote { paths: paths(&["a"]), failed: true }, None),
        (Event::Read { paths: paths(&["a"]) }, Some("PostToolUse")),
        (Event::Other, None),
        (Event::TurnEnded { still_working: true }, None),
    ];
    for (event, name) in notes {
        let expected = name.map_or(SILENCE, |name| json_only(context(name)));
        for agent in [Agent::Claude, Agent::Codex] {
            check(agent, Some(event.clone()), &allow_with_note(), &expected);
        }
    }
    check(
        Agent::Cursor,
        Some(Event::Started),
        &allow_with_note(),
        &json_only(json!({"additional_context": "left dirty"})),
    );
}

// S4-19
#[test]
fn no_denial_of_any_kind_lets_an_edit_through() {
    // A tool that nobody knows, a file, or nothing that was understood; with a reason and without one.
    let events = [Some(writing(&["a"])), Some(Event::Calling), Some(Event::Other), None];
    for agent in Agent::ALL {
        for event in &events {
            for (reason, stop) in [("held", false), ("held", true), ("", false), (" \n", true)] {
                let heard = event.clone().map(|event| Heard { event, ..heard() });
                let verdict = Verdict::Deny { reason: reason.to_owned(), stop };
                let answer = answer(agent, heard.as_ref(), &verdict);
                assert!(!lets_through(agent, &answer), "{agent} {event:?} {verdict:?} {answer:?}");
            }
        }
    }
}

#[test]
fn allowing_never_approves_on_behalf_of_the_user() {
    for agent in [Agent::Claude, Agent::Codex, Agent::Gemini] {
        for verdict in [allow(), allow_with_note(), Verdict::Noted] {
            let heard = Heard { event: writing(&["a"]), ..heard() };
            let answer = answer(agent, Some(&heard), &verdict);
            assert!(lets_through(agent, &answer), "{agent} {verdict:?}");
            assert!(!answer.stdout.contains("allow"), "{agent} {verdict:?}");
        }
    }
}
