//! Claude Code.

use serde_json::{Value, json};

use crate::payload::{HookEventKind, PayloadError, PayloadErrorKind, event_name, parse_common};
use crate::payload_fields::PayloadFields;
use crate::tools::{self, ToolAccess};
use crate::verdict::{HookResponse, HookVerdict};
use crate::{HookEvent, HookPayload};

pub(super) fn parse(fields: &PayloadFields<'_>) -> Result<HookPayload, PayloadError> {
    // Case does not matter: editors that run Claude's hooks beside their own call `PreToolUse` `preToolUse`.
    let moment = match event_name(fields)?.to_ascii_lowercase().as_str() {
        "pretooluse" => HookEventKind::Before,
        "posttooluse" => HookEventKind::After { failed: false },
        "posttoolusefailure" => HookEventKind::After { failed: true },
        "userpromptsubmit" => HookEventKind::Prompted,
        "sessionstart" => HookEventKind::Started,
        "sessionend" => HookEventKind::Ended,
        "stop" | "stopfailure" => HookEventKind::TurnEnded { still_working: has_background_tasks(fields) },
        "subagentstart" => HookEventKind::SubagentStarted,
        // It lists itself as still running.
        "subagentstop" => HookEventKind::SubagentEnded,
        _ => HookEventKind::Other,
    };
    parse_common(fields, moment, tool_access).map_err(|wrong| moment.error(wrong))
}

fn tool_access(tool: &str, input: &PayloadFields<'_>) -> Result<ToolAccess, PayloadErrorKind> {
    match tool {
        "Edit" | "MultiEdit" | "NotebookEdit" => tools::write_access(input, false),
        "Write" => tools::write_access(input, true),
        "Read" | "NotebookRead" => tools::read_access(input),
        _ => tools::guess_access(tool, input),
    }
}

/// Whether a subagent or a shell of the session goes on after its turn.
fn has_background_tasks(fields: &PayloadFields<'_>) -> bool {
    fields.objects("background_tasks").any(|task| {
        let kind = task.lenient_text("type").unwrap_or_default();
        let counts = ["agent", "shell", "bash"].iter().any(|word| kind.contains(word));
        counts && task.lenient_text("status") == Some("running")
    })
}

pub(super) fn render_response(event: Option<&HookEvent>, verdict: &HookVerdict) -> HookResponse {
    match verdict {
        // Never `permissionDecision: "allow"`: that would approve the call in the person's place.
        HookVerdict::Allow { message: Some(message) } => context_response(event, message),
        HookVerdict::Allow { message: None } | HookVerdict::Acknowledge => HookResponse::empty(),
        HookVerdict::Deny { reason, stop } => match event {
            None => HookResponse::blocked(reason),
            Some(HookEvent::BeforeWrite { .. } | HookEvent::BeforeToolCall | HookEvent::Other) => {
                HookResponse::json(&denial(reason, *stop))
            }
            Some(HookEvent::Prompted) => HookResponse::json(&json!({"decision": "block", "reason": reason})),
            Some(_) => HookResponse::log_only(reason.clone()),
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

/// A message for the model, where the event takes one.
pub(super) fn context_response(event: Option<&HookEvent>, message: &str) -> HookResponse {
    let name = match event {
        Some(HookEvent::BeforeWrite { .. }) => "PreToolUse",
        Some(HookEvent::AfterWrite { failed: false, .. } | HookEvent::AfterRead { .. }) => "PostToolUse",
        Some(HookEvent::Prompted) => "UserPromptSubmit",
        Some(HookEvent::Started) => "SessionStart",
        _ => return HookResponse::empty(),
    };
    HookResponse::json(&json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": message}}))
}
