//! Gemini CLI.

use serde_json::json;

use crate::payload::{HookEventKind, PayloadError, PayloadErrorKind, event_name, parse_common};
use crate::payload_fields::PayloadFields;
use crate::tools::{self, ToolAccess};
use crate::verdict::{HookResponse, HookVerdict};
use crate::{HookEvent, HookPayload};

pub(super) fn parse(fields: &PayloadFields<'_>) -> Result<HookPayload, PayloadError> {
    let moment = match event_name(fields)? {
        "BeforeTool" => HookEventKind::Before,
        "AfterTool" => HookEventKind::After { failed: failed(fields) },
        "BeforeAgent" => HookEventKind::Prompted,
        "AfterAgent" => HookEventKind::TurnEnded { still_working: false },
        "SessionStart" => HookEventKind::Started,
        "SessionEnd" => HookEventKind::Ended,
        _ => HookEventKind::Other,
    };
    parse_common(fields, moment, tool_access).map_err(|wrong| moment.error(wrong))
}

fn tool_access(tool: &str, input: &PayloadFields<'_>) -> Result<ToolAccess, PayloadErrorKind> {
    match tool {
        "replace" | "edit" => tools::write_access(input, false),
        "write_file" => tools::write_access(input, true),
        "read_file" | "read_many_files" => tools::read_access(input),
        _ => tools::guess_access(tool, input),
    }
}

fn failed(fields: &PayloadFields<'_>) -> bool {
    fields.nested_object(&["tool_response"]).is_some_and(|response| response.value("error").is_some())
}

pub(super) fn render_response(event: Option<&HookEvent>, verdict: &HookVerdict) -> HookResponse {
    match verdict {
        // No note reaches the model before a call; the person sees this one.
        HookVerdict::Allow { message: Some(message) } => {
            HookResponse::json(&json!({"systemMessage": message}))
        }
        HookVerdict::Allow { message: None } | HookVerdict::Acknowledge => HookResponse::empty(),
        HookVerdict::Deny { reason, stop } => match event {
            None => HookResponse::blocked(reason),
            Some(
                HookEvent::BeforeWrite { .. }
                | HookEvent::BeforeToolCall
                | HookEvent::Other
                | HookEvent::Prompted,
            ) => {
                let mut answer = json!({"decision": "deny", "reason": reason});
                if *stop {
                    answer["continue"] = json!(false);
                    answer["stopReason"] = json!(reason);
                }
                HookResponse::json(&answer)
            }
            Some(_) => HookResponse::log_only(reason.clone()),
        },
    }
}
