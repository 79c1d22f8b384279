//! Cursor, by its documentation.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::payload::{
    HookEventKind, PayloadError, PayloadErrorKind, absolute_folder, event_name, excerpt, optional_id,
    parse_common,
};
use crate::payload_fields::PayloadFields;
use crate::tools::{self, ToolAccess};
use crate::verdict::{HookResponse, HookVerdict};
use crate::{HookEvent, HookPayload, HookWaitPolicy, Subagent};

pub(super) fn parse(fields: &PayloadFields<'_>) -> Result<HookPayload, PayloadError> {
    let name = event_name(fields)?;
    let moment = match name {
        "preToolUse" | "beforeMCPExecution" => HookEventKind::Before,
        "postToolUse" | "afterMCPExecution" | "afterFileEdit" | "afterTabFileEdit" => {
            HookEventKind::After { failed: false }
        }
        // The content was read already: it is in the payload.
        "beforeReadFile" | "beforeTabFileRead" => HookEventKind::After { failed: false },
        "postToolUseFailure" => HookEventKind::After { failed: true },
        "beforeSubmitPrompt" => HookEventKind::Prompted,
        "sessionStart" => HookEventKind::Started,
        "sessionEnd" => HookEventKind::Ended,
        "stop" => HookEventKind::TurnEnded { still_working: false },
        "subagentStart" => HookEventKind::SubagentStarted,
        "subagentStop" => HookEventKind::SubagentEnded,
        _ => HookEventKind::Other,
    };
    let payload = match name {
        "afterFileEdit" | "afterTabFileEdit" => {
            parse_file_event(fields, moment, tools::write_access(fields, false))
        }
        "beforeReadFile" | "beforeTabFileRead" => {
            parse_file_event(fields, moment, tools::read_access(fields))
        }
        "subagentStart" | "subagentStop" => parse_subagent_event(fields, moment),
        // It names a command and no tool.
        "beforeShellExecution" => parse_common(fields, moment, tool_access)
            .map(|payload| HookPayload { event: HookEvent::BeforeToolCall, ..payload }),
        _ => parse_tool_event(fields, moment),
    };
    let payload = payload.and_then(|payload| {
        // Both are the same where both are there; one name for it is enough.
        let session = optional_id(fields, &["conversation_id"])?.unwrap_or(payload.session);
        Ok(HookPayload { session, cwd: payload.cwd.or(workspace_root(fields)?), ..payload })
    });
    payload.map_err(|wrong| moment.error(wrong))
}

fn tool_access(tool: &str, input: &PayloadFields<'_>) -> Result<ToolAccess, PayloadErrorKind> {
    match tool {
        "Write" => tools::write_access(input, tools::has_content(input)),
        "Delete" | "Edit" | "StrReplace" | "EditNotebook" => tools::write_access(input, false),
        "Read" => tools::read_access(input),
        _ => tools::guess_access(tool, input),
    }
}

/// An event that names its file beside everything else.
fn parse_file_event(
    fields: &PayloadFields<'_>,
    moment: HookEventKind,
    touch: Result<ToolAccess, PayloadErrorKind>,
) -> Result<HookPayload, PayloadErrorKind> {
    let touch = touch?;
    Ok(HookPayload {
        event: moment.to_event(touch, None),
        ..parse_common(fields, HookEventKind::Other, self::tool_access)?
    })
}

/// A call of a tool. The input of an MCP tool comes as JSON in a text.
fn parse_tool_event(
    fields: &PayloadFields<'_>,
    moment: HookEventKind,
) -> Result<HookPayload, PayloadErrorKind> {
    let is_call = matches!(moment, HookEventKind::Before | HookEventKind::After { .. });
    let text = fields.value("tool_input").and_then(Value::as_str).filter(|_| is_call);
    let Some(text) = text else { return parse_common(fields, moment, tool_access) };
    let tool = fields.text("tool_name")?.ok_or(PayloadErrorKind::Missing("tool_name"))?;
    let input =
        if text.trim().is_empty() { PayloadFields::empty() } else { PayloadFields::parse(text.as_bytes())? };
    parse_file_event(fields, moment, tool_access(tool, &input))
}

/// The beginning or end of a subagent.
fn parse_subagent_event(
    fields: &PayloadFields<'_>,
    moment: HookEventKind,
) -> Result<HookPayload, PayloadErrorKind> {
    let payload = parse_common(fields, moment, tool_access)?;
    let kind = fields.lenient_text("subagent_type").and_then(excerpt);
    let parent = optional_id(fields, &["parent_conversation_id"])?;
    let subagent =
        optional_id(fields, &["subagent_id"])?.map(|id| Subagent { id, kind: kind.clone(), parent });
    let task = fields.lenient_text("task").or(fields.lenient_text("description")).and_then(excerpt).or(kind);
    Ok(HookPayload {
        subagent: subagent.or(payload.subagent.clone()),
        task,
        wait_policy: HookWaitPolicy::WaitForRetry,
        ..payload
    })
}

/// Where no folder is named, paths are meant in the first one that is open.
fn workspace_root(fields: &PayloadFields<'_>) -> Result<Option<PathBuf>, PayloadErrorKind> {
    let roots = fields.value("workspace_roots").and_then(Value::as_array);
    let Some(Value::String(first)) = roots.and_then(|roots| roots.first()) else { return Ok(None) };
    absolute_folder(fields, "workspace_roots", first).map(Some)
}

pub(super) fn render_response(event: Option<&HookEvent>, verdict: &HookVerdict) -> HookResponse {
    match (verdict, event) {
        (HookVerdict::Deny { reason, .. }, None) => {
            HookResponse { stdout: denial(reason), ..HookResponse::blocked(reason) }
        }
        (HookVerdict::Deny { reason, .. }, Some(HookEvent::Prompted)) => {
            HookResponse::json(&json!({"continue": false, "user_message": reason}))
        }
        (HookVerdict::Deny { reason, .. }, Some(event)) if awaits_permission(event) => {
            HookResponse { stdout: denial(reason), ..HookResponse::empty() }
        }
        (HookVerdict::Deny { reason, .. }, Some(_)) => {
            HookResponse { stdout: "{}".to_owned(), ..HookResponse::log_only(reason.clone()) }
        }
        (HookVerdict::Allow { message: Some(message) }, Some(HookEvent::BeforeWrite { .. })) => {
            HookResponse::json(&json!({"permission": "allow", "agent_message": message}))
        }
        (
            HookVerdict::Allow { message: Some(message) },
            Some(HookEvent::Started | HookEvent::AfterWrite { .. }),
        ) => HookResponse::json(&json!({"additional_context": message})),
        (HookVerdict::Allow { .. } | HookVerdict::Acknowledge, Some(HookEvent::Prompted)) => {
            HookResponse::json(&json!({"continue": true}))
        }
        // Silence, or an object that does not say it, is a denial to a hook that fails closed.
        (HookVerdict::Allow { .. } | HookVerdict::Acknowledge, Some(event)) if awaits_permission(event) => {
            HookResponse::json(&json!({"permission": "allow"}))
        }
        (HookVerdict::Allow { .. } | HookVerdict::Acknowledge, _) => HookResponse::json(&json!({})),
    }
}

/// Whether Cursor waits for a permission, or may.
fn awaits_permission(event: &HookEvent) -> bool {
    matches!(
        event,
        HookEvent::BeforeWrite { .. }
            | HookEvent::AfterRead { .. }
            | HookEvent::BeforeToolCall
            | HookEvent::Other
            | HookEvent::SubagentStarted
    )
}

fn denial(reason: &str) -> String {
    json!({"permission": "deny", "agent_message": reason, "user_message": reason}).to_string()
}
