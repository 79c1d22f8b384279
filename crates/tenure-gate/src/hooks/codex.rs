//! Codex. Its answers must be plain: with `continue: false` beside a denial the edit happens.

use serde_json::{Value, json};

use super::commands::{Answer, Verdict};
use super::fields::Fields;
use super::frame::{Moment, event_name, hear};
use super::tools::{self, Touch};
use super::unheard::{Unheard, Wrong};
use super::{Event, Heard, Patience, claude, patch};

pub(super) fn read(fields: &Fields<'_>) -> Result<Heard, Unheard> {
    let moment = match event_name(fields)? {
        "PreToolUse" => Moment::Before,
        "PostToolUse" => Moment::After { failed: failed(fields) },
        "UserPromptSubmit" => Moment::Prompted,
        "SessionStart" => Moment::Started,
        "SessionEnd" => Moment::Ended,
        "Stop" => Moment::TurnEnded { still_working: false },
        "SubagentStart" => Moment::SubagentStarted,
        "SubagentStop" => Moment::SubagentEnded,
        _ => Moment::Other,
    };
    let heard = hear(fields, moment, touch).map_err(|wrong| moment.unheard(wrong))?;
    // In code mode a script makes the calls. It gives control back to the model after half a minute, and what is
    // allowed later happens in the background.
    let in_code_mode = heard.call.as_deref().is_some_and(|call| call.starts_with("exec-"));
    let patience = if in_code_mode { Patience::Brief } else { Patience::Hold };
    Ok(Heard { patience, ..heard })
}

fn touch(tool: &str, input: &Fields<'_>) -> Result<Touch, Wrong> {
    if matches!(tool, "apply_patch" | "applypatch") {
        return tools::patches(input);
    }
    // A patch in a shell command is applied by Codex itself: no shell sees it.
    let command = ["command", "cmd", "script"].iter().find_map(|name| command(input.value(name)?));
    let patch = command.map_or(Ok(None), |command| patch::in_command(&command))?;
    let Some(patch) = patch else { return tools::guess(tool, input) };
    let mut paths = Vec::new();
    for name in &patch.names {
        tools::add(&mut paths, tools::path(input, name)?)?;
    }
    Ok(Touch::Writes { paths, whole: patch.whole })
}

/// A command as one text. Where it comes in parts, each becomes a quoted word.
fn command(value: &Value) -> Option<String> {
    let quoted = |part: &str| format!("'{}'", part.replace('\'', "'\"'\"'"));
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            Some(parts.iter().filter_map(Value::as_str).map(quoted).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// A patch that did not fit says so in its output.
fn failed(fields: &Fields<'_>) -> bool {
    let output = fields.hint("tool_response").unwrap_or_default();
    let code = output.strip_prefix("Exit code: ").and_then(|rest| rest.lines().next());
    code.is_some_and(|code| code.trim() != "0")
}

pub(super) fn answer(event: Option<&Event>, verdict: &Verdict) -> Answer {
    match verdict {
        Verdict::Allow { note: Some(note) } => claude::context(event, note),
        // An allowing answer counts as a hook that failed.
        Verdict::Allow { note: None } | Verdict::Noted => Answer::silence(),
        Verdict::Deny { reason, .. } => match event {
            None => Answer::blocked(reason),
            Some(Event::Writing { .. } | Event::Calling | Event::Other) => {
                Answer::json(&json!({"hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                }}))
            }
            Some(Event::Prompted) => Answer::json(&json!({"decision": "block", "reason": reason})),
            // At the end of a turn a denial would begin another one, for ever.
            Some(_) => Answer::quiet(reason.clone()),
        },
    }
}
