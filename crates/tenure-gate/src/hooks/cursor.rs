//! Cursor, by its documentation.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::commands::{Answer, Verdict};
use super::fields::Fields;
use super::frame::{Moment, absolute, event_name, excerpt, hear, id};
use super::tools::{self, Touch};
use super::unheard::{Unheard, Wrong};
use super::{Event, Heard, Patience, Subagent};

pub(super) fn read(fields: &Fields<'_>) -> Result<Heard, Unheard> {
    let name = event_name(fields)?;
    let moment = match name {
        "preToolUse" | "beforeMCPExecution" => Moment::Before,
        "postToolUse" | "afterMCPExecution" | "afterFileEdit" | "afterTabFileEdit" => {
            Moment::After { failed: false }
        }
        // The content was read already: it is in the payload.
        "beforeReadFile" | "beforeTabFileRead" => Moment::After { failed: false },
        "postToolUseFailure" => Moment::After { failed: true },
        "beforeSubmitPrompt" => Moment::Prompted,
        "sessionStart" => Moment::Started,
        "sessionEnd" => Moment::Ended,
        "stop" => Moment::TurnEnded { still_working: false },
        "subagentStart" => Moment::SubagentStarted,
        "subagentStop" => Moment::SubagentEnded,
        _ => Moment::Other,
    };
    let heard = match name {
        "afterFileEdit" | "afterTabFileEdit" => told(fields, moment, tools::writes(fields, false)),
        "beforeReadFile" | "beforeTabFileRead" => told(fields, moment, tools::reads(fields)),
        "subagentStart" | "subagentStop" => helped(fields, moment),
        // It names a command and no tool.
        "beforeShellExecution" => {
            hear(fields, moment, touch).map(|heard| Heard { event: Event::Calling, ..heard })
        }
        _ => called(fields, moment),
    };
    let heard = heard.and_then(|heard| {
        // Both are the same where both are there; one name for it is enough.
        let session = id(fields, &["conversation_id"])?.unwrap_or(heard.session);
        Ok(Heard { session, cwd: heard.cwd.or(root(fields)?), ..heard })
    });
    heard.map_err(|wrong| moment.unheard(wrong))
}

fn touch(tool: &str, input: &Fields<'_>) -> Result<Touch, Wrong> {
    match tool {
        "Write" => tools::writes(input, tools::has_content(input)),
        "Delete" | "Edit" | "StrReplace" | "EditNotebook" => tools::writes(input, false),
        "Read" => tools::reads(input),
        _ => tools::guess(tool, input),
    }
}

/// An event that names its file beside everything else.
fn told(fields: &Fields<'_>, moment: Moment, touch: Result<Touch, Wrong>) -> Result<Heard, Wrong> {
    let touch = touch?;
    Ok(Heard { event: moment.event(touch, None), ..hear(fields, Moment::Other, self::touch)? })
}

/// A call of a tool. The input of an MCP tool comes as JSON in a text.
fn called(fields: &Fields<'_>, moment: Moment) -> Result<Heard, Wrong> {
    let is_call = matches!(moment, Moment::Before | Moment::After { .. });
    let text = fields.value("tool_input").and_then(Value::as_str).filter(|_| is_call);
    let Some(text) = text else { return hear(fields, moment, touch) };
    let tool = fields.text("tool_name")?.ok_or(Wrong::Missing("tool_name"))?;
    let input = if text.trim().is_empty() { Fields::none() } else { Fields::parse(text.as_bytes())? };
    told(fields, moment, touch(tool, &input))
}

/// The beginning or end of a subagent.
fn helped(fields: &Fields<'_>, moment: Moment) -> Result<Heard, Wrong> {
    let heard = hear(fields, moment, touch)?;
    let kind = fields.hint("subagent_type").and_then(excerpt);
    let parent = id(fields, &["parent_conversation_id"])?;
    let subagent = id(fields, &["subagent_id"])?.map(|id| Subagent { id, kind: kind.clone(), parent });
    let task = fields.hint("task").or(fields.hint("description")).and_then(excerpt).or(kind);
    Ok(Heard { subagent: subagent.or(heard.subagent.clone()), task, patience: Patience::Hold, ..heard })
}

/// Where no folder is named, paths are meant in the first one that is open.
fn root(fields: &Fields<'_>) -> Result<Option<PathBuf>, Wrong> {
    let roots = fields.value("workspace_roots").and_then(Value::as_array);
    let Some(Value::String(first)) = roots.and_then(|roots| roots.first()) else { return Ok(None) };
    absolute(fields, "workspace_roots", first).map(Some)
}

pub(super) fn answer(event: Option<&Event>, verdict: &Verdict) -> Answer {
    match (verdict, event) {
        (Verdict::Deny { reason, .. }, None) => Answer { stdout: denial(reason), ..Answer::blocked(reason) },
        (Verdict::Deny { reason, .. }, Some(Event::Prompted)) => {
            Answer::json(&json!({"continue": false, "user_message": reason}))
        }
        (Verdict::Deny { reason, .. }, Some(event)) if asks(event) => {
            Answer { stdout: denial(reason), ..Answer::silence() }
        }
        (Verdict::Deny { reason, .. }, Some(_)) => {
            Answer { stdout: "{}".to_owned(), ..Answer::quiet(reason.clone()) }
        }
        (Verdict::Allow { note: Some(note) }, Some(Event::Writing { .. })) => {
            Answer::json(&json!({"permission": "allow", "agent_message": note}))
        }
        (Verdict::Allow { note: Some(note) }, Some(Event::Started | Event::Wrote { .. })) => {
            Answer::json(&json!({"additional_context": note}))
        }
        (Verdict::Allow { .. } | Verdict::Noted, Some(Event::Prompted)) => {
            Answer::json(&json!({"continue": true}))
        }
        // Silence, or an object that does not say it, is a denial to a hook that fails closed.
        (Verdict::Allow { .. } | Verdict::Noted, Some(event)) if asks(event) => {
            Answer::json(&json!({"permission": "allow"}))
        }
        (Verdict::Allow { .. } | Verdict::Noted, _) => Answer::json(&json!({})),
    }
}

/// Whether Cursor waits for a permission, or may.
fn asks(event: &Event) -> bool {
    matches!(
        event,
        Event::Writing { .. } | Event::Read { .. } | Event::Calling | Event::Other | Event::SubagentStarted
    )
}

fn denial(reason: &str) -> String {
    json!({"permission": "deny", "agent_message": reason, "user_message": reason}).to_string()
}
