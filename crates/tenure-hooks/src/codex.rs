//! Codex. Its answers must be plain: with `continue: false` beside a denial the edit happens.

use serde_json::{Value, json};

use crate::payload::{HookEventKind, PayloadError, PayloadErrorKind, event_name, parse_common};
use crate::payload_fields::PayloadFields;
use crate::tools::{self, ToolAccess};
use crate::verdict::{HookResponse, HookVerdict};
use crate::{HookEvent, HookPayload, HookWaitPolicy, apply_patch, claude};

pub(super) fn parse(fields: &PayloadFields<'_>) -> Result<HookPayload, PayloadError> {
    let moment = match event_name(fields)? {
        "PreToolUse" => HookEventKind::Before,
        "PostToolUse" => HookEventKind::After { failed: failed(fields) },
        "UserPromptSubmit" => HookEventKind::Prompted,
        "SessionStart" => HookEventKind::Started,
        "SessionEnd" => HookEventKind::Ended,
        "Stop" => HookEventKind::TurnEnded { still_working: false },
        "SubagentStart" => HookEventKind::SubagentStarted,
        "SubagentStop" => HookEventKind::SubagentEnded,
        _ => HookEventKind::Other,
    };
    let payload = parse_common(fields, moment, tool_access).map_err(|wrong| moment.error(wrong))?;
    // In code mode a script makes the calls. It gives control back to the model after half a minute, and what is
    // allowed later happens in the background.
    let in_code_mode = payload.call.as_deref().is_some_and(|call| call.starts_with("exec-"));
    let patience = if in_code_mode { HookWaitPolicy::DenyImmediately } else { HookWaitPolicy::WaitForRetry };
    Ok(HookPayload { wait_policy: patience, ..payload })
}

fn tool_access(tool: &str, input: &PayloadFields<'_>) -> Result<ToolAccess, PayloadErrorKind> {
    if matches!(tool, "apply_patch" | "applypatch") {
        return tools::patch_access(input);
    }
    // A patch in a shell command is applied by Codex itself: no shell sees it.
    let command = ["command", "cmd", "script"].iter().find_map(|name| command(input.value(name)?));
    let patch = command.map_or(Ok(None), |command| apply_patch::parse_command(&command))?;
    let Some(patch) = patch else { return tools::guess_access(tool, input) };
    let mut paths = Vec::new();
    for name in &patch.names {
        tools::add_path(&mut paths, tools::valid_path(input, name)?)?;
    }
    Ok(ToolAccess::Writes { paths, replaces_content: patch.replaces_content })
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
fn failed(fields: &PayloadFields<'_>) -> bool {
    let output = fields.lenient_text("tool_response").unwrap_or_default();
    let code = output.strip_prefix("Exit code: ").and_then(|rest| rest.lines().next());
    code.is_some_and(|code| code.trim() != "0")
}

pub(super) fn render_response(event: Option<&HookEvent>, verdict: &HookVerdict) -> HookResponse {
    match verdict {
        HookVerdict::Allow { message: Some(message) } => claude::context_response(event, message),
        // An allowing answer counts as a hook that failed.
        HookVerdict::Allow { message: None } | HookVerdict::Acknowledge => HookResponse::empty(),
        HookVerdict::Deny { reason, .. } => match event {
            None => HookResponse::blocked(reason),
            Some(HookEvent::BeforeWrite { .. } | HookEvent::BeforeToolCall | HookEvent::Other) => {
                HookResponse::json(&json!({"hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                }}))
            }
            Some(HookEvent::Prompted) => HookResponse::json(&json!({"decision": "block", "reason": reason})),
            // At the end of a turn a denial would begin another one, for ever.
            Some(_) => HookResponse::log_only(reason.clone()),
        },
    }
}
