//! Claude Code.

use serde_json::{Value, json};

use super::commands::{Answer, Verdict};
use super::fields::Fields;
use super::frame::{Moment, event_name, hear};
use super::tools::{self, Touch};
use super::unheard::{Unheard, Wrong};
use super::{Event, Heard};

pub(super) fn read(fields: &Fields<'_>) -> Result<Heard, Unheard> {
    // Case does not matter: editors that run Claude's hooks beside their own call `PreToolUse` `preToolUse`.
    let moment = match event_name(fields)?.to_ascii_lowercase().as_str() {
        "pretooluse" => Moment::Before,
        "posttooluse" => Moment::After { failed: false },
        "posttoolusefailure" => Moment::After { failed: true },
        "userpromptsubmit" => Moment::Prompted,
        "sessionstart" => Moment::Started,
        "sessionend" => Moment::Ended,
        "stop" | "stopfailure" => Moment::TurnEnded { still_working: still_working(fields) },
        "subagentstart" => Moment::SubagentStarted,
        // It lists itself as still running.
        "subagentstop" => Moment::SubagentEnded,
        _ => Moment::Other,
    };
    hear(fields, moment, touch).map_err(|wrong| moment.unheard(wrong))
}

fn touch(tool: &str, input: &Fields<'_>) -> Result<Touch, Wrong> {
    match tool {
        "Edit" | "MultiEdit" | "NotebookEdit" => tools::writes(input, false),
        "Write" => tools::writes(input, true),
        "Read" | "NotebookRead" => tools::reads(input),
        _ => tools::guess(tool, input),
    }
}

/// Whether a subagent or a shell of the session goes on after its turn.
fn still_working(fields: &Fields<'_>) -> bool {
    fields.objects("background_tasks").any(|task| {
        let kind = task.hint("type").unwrap_or_default();
        let counts = ["agent", "shell", "bash"].iter().any(|word| kind.contains(word));
        counts && task.hint("status") == Some("running")
    })
}

pub(super) fn answer(event: Option<&Event>, verdict: &Verdict) -> Answer {
    match verdict {
        // Never `permissionDecision: "allow"`: that would approve the call in the person's place.
        Verdict::Allow { note: Some(note) } => context(event, note),
        Verdict::Allow { note: None } | Verdict::Noted => Answer::silence(),
        Verdict::Deny { reason, stop } => match event {
            None => Answer::blocked(reason),
            Some(Event::Writing { .. } | Event::Calling | Event::Other) => {
                Answer::json(&denial(reason, *stop))
            }
            Some(Event::Prompted) => Answer::json(&json!({"decision": "block", "reason": reason})),
            Some(_) => Answer::quiet(reason.clone()),
        },
    }
}

/// `continue: false` ends the turn. Without the denial beside it the edit would happen all the same.
fn denial(reason: &str, stop: bool) -> Value {
    let mut answer = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }});
    if stop {
        answer["continue"] = json!(false);
        answer["stopReason"] = json!(reason);
    }
    answer
}

/// A note for the model, where the event takes one.
pub(super) fn context(event: Option<&Event>, note: &str) -> Answer {
    let name = match event {
        Some(Event::Writing { .. }) => "PreToolUse",
        Some(Event::Wrote { failed: false, .. } | Event::Read { .. }) => "PostToolUse",
        Some(Event::Prompted) => "UserPromptSubmit",
        Some(Event::Started) => "SessionStart",
        _ => return Answer::silence(),
    };
    Answer::json(&json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": note}}))
}
