//! OpenCode, as the plugin that `tenure install opencode` puts in passes it on: `{"event", "input", "output",
//! "directory"}`. The same without `event`, and events as OpenCode's bus has them, are understood too.

use serde_json::{Value, json};

use crate::payload::{
    HookEventKind, PayloadError, PayloadErrorKind, excerpt, optional_folder, optional_id, prompt_excerpt,
    valid_id,
};
use crate::payload_fields::PayloadFields;
use crate::tools::{self, ToolAccess};
use crate::verdict::{HookResponse, HookVerdict};
use crate::{HookPayload, HookWaitPolicy, Subagent};

const BEFORE: &str = "tool.execute.before";
const AFTER: &str = "tool.execute.after";

/// Where the plugin may have put what OpenCode's bus says: `{"type", "properties"}`.
const BUS_EVENT_PATHS: [&[&str]; 4] = [&[], &["event"], &["input"], &["input", "event"]];

pub(super) fn parse(fields: &PayloadFields<'_>) -> Result<HookPayload, PayloadError> {
    let mut places = BUS_EVENT_PATHS.iter().filter_map(|place| fields.nested_object(place));
    let bus =
        places.find(|place| place.lenient_text("type").is_some() && place.value("properties").is_some());
    // Whoever does not say what it is may stand before a change.
    let unknown = |wrong| PayloadError::new(wrong, true);
    let name = match (fields.text("event"), &bus) {
        (Ok(Some(name)), _) if name != "event" => name,
        (_, Some(bus)) => bus.lenient_text("type").unwrap_or_default(),
        (Err(wrong), None) => return Err(unknown(wrong)),
        (Ok(_), None) => infer_event(fields).map_err(unknown)?,
    };
    match name {
        BEFORE => parse_tool_event(fields, HookEventKind::Before)
            .map_err(|wrong| HookEventKind::Before.error(wrong)),
        AFTER => parse_tool_event(fields, HookEventKind::After { failed: false })
            .map_err(|wrong| PayloadError::new(wrong, false)),
        _ => parse_other_event(name, fields, bus.as_ref()).map_err(|wrong| PayloadError::new(wrong, false)),
    }
}

/// Which event an unnamed payload is: before a call the arguments are in the output, after it in the input.
fn infer_event(fields: &PayloadFields<'_>) -> Result<&'static str, PayloadErrorKind> {
    let Some(input) = fields.object("input")? else {
        // Nothing that a hook is called with: what the plugin says of itself.
        let speaks_of_itself = fields.value("worktree").is_some() && fields.value("output").is_none();
        return if speaks_of_itself { Ok("plugin.init") } else { Err(PayloadErrorKind::Missing("event")) };
    };
    let output = fields.object("output")?.unwrap_or_else(PayloadFields::empty);
    let has_tool = fields.value("tool_name").or(input.value("tool")).is_some();
    match (has_tool, output.value("args").is_some(), input.value("args").is_some()) {
        (true, false, true) => Ok(AFTER),
        (false, false, false) if output.value("env").is_some() => Ok("shell.env"),
        _ => Ok(BEFORE),
    }
}

fn parse_tool_event(
    fields: &PayloadFields<'_>,
    moment: HookEventKind,
) -> Result<HookPayload, PayloadErrorKind> {
    let input = fields.object("input")?.ok_or(PayloadErrorKind::Missing("input"))?;
    let output = fields.object("output")?.unwrap_or_else(PayloadFields::empty);
    let tool =
        input.text("tool")?.or(fields.text("tool_name")?).ok_or(PayloadErrorKind::Missing("input.tool"))?;
    let arguments_source = if moment == HookEventKind::Before { &output } else { &input };
    let arguments = arguments_source.object("args")?.unwrap_or_else(PayloadFields::empty);
    let touched = tool_access(tool, &arguments)?;
    let mut payload = base_payload(fields, &input)?;
    payload.event = moment.to_event(touched, None);
    payload.tool = excerpt(tool);
    Ok(payload)
}

fn tool_access(tool: &str, input: &PayloadFields<'_>) -> Result<ToolAccess, PayloadErrorKind> {
    match tool {
        "edit" | "multiedit" => tools::write_access(input, false),
        "write" => tools::write_access(input, true),
        "patch" | "apply_patch" => tools::patch_access(input),
        "read" => tools::read_access(input),
        _ => tools::guess_access(tool, input),
    }
}

fn parse_other_event(
    name: &str,
    fields: &PayloadFields<'_>,
    bus: Option<&PayloadFields<'_>>,
) -> Result<HookPayload, PayloadErrorKind> {
    let properties =
        bus.and_then(|bus| bus.nested_object(&["properties"])).or(fields.nested_object(&["properties"]));
    let input = properties.or(fields.nested_object(&["input"]));
    let properties = input.as_ref().unwrap_or(fields);
    let info = properties.object("info")?.unwrap_or_else(PayloadFields::empty);
    let mut payload = base_payload(fields, properties)?;
    let is_idle = properties
        .nested_object(&["status"])
        .is_some_and(|status| status.lenient_text("type") == Some("idle"));
    let parent = optional_id(&info, &["parentID"])?;
    let moment = match name {
        "session.created" if parent.is_some() => HookEventKind::SubagentStarted,
        "session.created" => HookEventKind::Started,
        "session.idle" => HookEventKind::TurnEnded { still_working: false },
        "session.status" if is_idle => HookEventKind::TurnEnded { still_working: false },
        "session.deleted" => HookEventKind::Ended,
        "chat.message" => HookEventKind::Prompted,
        _ => HookEventKind::Other,
    };
    payload.event = moment.to_event(ToolAccess::Nothing, Some("deleted"));
    if let Some(parent) = parent {
        let kind = info.lenient_text("agent").and_then(excerpt);
        payload.subagent = Some(Subagent { id: payload.session.clone(), kind, parent: Some(parent) });
        payload.task = info.lenient_text("title").and_then(excerpt);
    }
    if moment == HookEventKind::Prompted {
        let output = fields.object("output")?.unwrap_or_else(PayloadFields::empty);
        payload.task = output.objects("parts").find_map(|part| prompt_excerpt(part.lenient_text("text")?));
    }
    Ok(payload)
}

/// Whose session, where, and which call.
fn base_payload(
    fields: &PayloadFields<'_>,
    properties: &PayloadFields<'_>,
) -> Result<HookPayload, PayloadErrorKind> {
    let info = properties.nested_object(&["info"]).unwrap_or_else(PayloadFields::empty);
    let session = match optional_id(properties, &["sessionID"])? {
        Some(session) => Some(session),
        None => optional_id(&info, &["id"])?,
    };
    let cwd = match optional_folder(fields, "directory")? {
        Some(folder) => Some(folder),
        None => optional_folder(&info, "directory")?.or(optional_folder(properties, "cwd")?),
    };
    Ok(HookPayload {
        session: session.ok_or(PayloadErrorKind::Missing("sessionID"))?,
        subagent: None,
        cwd,
        event: super::HookEvent::Other,
        call: properties.lenient_text("callID").and_then(valid_id),
        tool: None,
        task: None,
        wait_policy: HookWaitPolicy::WaitForRetry,
    })
}

/// One object on standard output, whatever was asked: the plugin throws on `deny`, ends the turn on `stop`, and takes a
/// process that says nothing for a denial.
pub(super) fn render_response(verdict: &HookVerdict) -> HookResponse {
    let answer: Value = match verdict {
        HookVerdict::Allow { message: Some(message) } => json!({"decision": "allow", "note": message}),
        HookVerdict::Allow { message: None } | HookVerdict::Acknowledge => json!({"decision": "allow"}),
        HookVerdict::Deny { reason, stop } => json!({"decision": "deny", "reason": reason, "stop": stop}),
    };
    HookResponse::json(&answer)
}
