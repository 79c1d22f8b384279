//! OpenCode, as the plugin that `tenure install opencode` puts in passes it on: `{"event", "input", "output",
//! "directory"}`. The same without `event`, and events as OpenCode's bus has them, are understood too.

use serde_json::{Value, json};

use super::commands::{Answer, Verdict};
use super::fields::Fields;
use super::frame::{Moment, excerpt, folder, id, plain, prompt};
use super::tools::{self, Touch};
use super::unheard::{Unheard, Wrong};
use super::{Heard, Patience, Subagent};

const BEFORE: &str = "tool.execute.before";
const AFTER: &str = "tool.execute.after";

/// Where the plugin may have put what OpenCode's bus says: `{"type", "properties"}`.
const PLACES: [&[&str]; 4] = [&[], &["event"], &["input"], &["input", "event"]];

pub(super) fn read(fields: &Fields<'_>) -> Result<Heard, Unheard> {
    let mut places = PLACES.iter().filter_map(|place| fields.at(place));
    let bus = places.find(|place| place.hint("type").is_some() && place.value("properties").is_some());
    // Whoever does not say what it is may stand before a change.
    let unknown = |wrong| Unheard::new(wrong, true);
    let name = match (fields.text("event"), &bus) {
        (Ok(Some(name)), _) if name != "event" => name,
        (_, Some(bus)) => bus.hint("type").unwrap_or_default(),
        (Err(wrong), None) => return Err(unknown(wrong)),
        (Ok(_), None) => form(fields).map_err(unknown)?,
    };
    match name {
        BEFORE => tool(fields, Moment::Before).map_err(|wrong| Moment::Before.unheard(wrong)),
        AFTER => tool(fields, Moment::After { failed: false }).map_err(|wrong| Unheard::new(wrong, false)),
        _ => other(name, fields, bus.as_ref()).map_err(|wrong| Unheard::new(wrong, false)),
    }
}

/// Which event an unnamed payload is: before a call the arguments are in the output, after it in the input.
fn form(fields: &Fields<'_>) -> Result<&'static str, Wrong> {
    let Some(input) = fields.object("input")? else {
        // Nothing that a hook is called with: what the plugin says of itself.
        let speaks_of_itself = fields.value("worktree").is_some() && fields.value("output").is_none();
        return if speaks_of_itself { Ok("plugin.init") } else { Err(Wrong::Missing("event")) };
    };
    let output = fields.object("output")?.unwrap_or_else(Fields::none);
    let has_tool = fields.value("tool_name").or(input.value("tool")).is_some();
    match (has_tool, output.value("args").is_some(), input.value("args").is_some()) {
        (true, false, true) => Ok(AFTER),
        (false, false, false) if output.value("env").is_some() => Ok("shell.env"),
        _ => Ok(BEFORE),
    }
}

fn tool(fields: &Fields<'_>, moment: Moment) -> Result<Heard, Wrong> {
    let input = fields.object("input")?.ok_or(Wrong::Missing("input"))?;
    let output = fields.object("output")?.unwrap_or_else(Fields::none);
    let tool = input.text("tool")?.or(fields.text("tool_name")?).ok_or(Wrong::Missing("input.tool"))?;
    let given = if moment == Moment::Before { &output } else { &input };
    let arguments = given.object("args")?.unwrap_or_else(Fields::none);
    let touched = touch(tool, &arguments)?;
    let mut heard = speaker(fields, &input)?;
    heard.event = moment.event(touched, None);
    heard.tool = excerpt(tool);
    Ok(heard)
}

fn touch(tool: &str, input: &Fields<'_>) -> Result<Touch, Wrong> {
    match tool {
        "edit" | "multiedit" => tools::writes(input, false),
        "write" => tools::writes(input, true),
        "patch" | "apply_patch" => tools::patches(input),
        "read" => tools::reads(input),
        _ => tools::guess(tool, input),
    }
}

fn other(name: &str, fields: &Fields<'_>, bus: Option<&Fields<'_>>) -> Result<Heard, Wrong> {
    let properties = bus.and_then(|bus| bus.at(&["properties"])).or(fields.at(&["properties"]));
    let input = properties.or(fields.at(&["input"]));
    let said = input.as_ref().unwrap_or(fields);
    let info = said.object("info")?.unwrap_or_else(Fields::none);
    let mut heard = speaker(fields, said)?;
    let is_idle = said.at(&["status"]).is_some_and(|status| status.hint("type") == Some("idle"));
    let parent = id(&info, &["parentID"])?;
    let moment = match name {
        "session.created" if parent.is_some() => Moment::SubagentStarted,
        "session.created" => Moment::Started,
        "session.idle" => Moment::TurnEnded { still_working: false },
        "session.status" if is_idle => Moment::TurnEnded { still_working: false },
        "session.deleted" => Moment::Ended,
        "chat.message" => Moment::Prompted,
        _ => Moment::Other,
    };
    heard.event = moment.event(Touch::Nothing, Some("deleted"));
    if let Some(parent) = parent {
        let kind = info.hint("agent").and_then(excerpt);
        heard.subagent = Some(Subagent { id: heard.session.clone(), kind, parent: Some(parent) });
        heard.task = info.hint("title").and_then(excerpt);
    }
    if moment == Moment::Prompted {
        let output = fields.object("output")?.unwrap_or_else(Fields::none);
        heard.task = output.objects("parts").find_map(|part| prompt(part.hint("text")?));
    }
    Ok(heard)
}

/// Whose session, where, and which call.
fn speaker(fields: &Fields<'_>, said: &Fields<'_>) -> Result<Heard, Wrong> {
    let info = said.at(&["info"]).unwrap_or_else(Fields::none);
    let session = match id(said, &["sessionID"])? {
        Some(session) => Some(session),
        None => id(&info, &["id"])?,
    };
    let cwd = match folder(fields, "directory")? {
        Some(folder) => Some(folder),
        None => folder(&info, "directory")?.or(folder(said, "cwd")?),
    };
    Ok(Heard {
        session: session.ok_or(Wrong::Missing("sessionID"))?,
        subagent: None,
        cwd,
        event: super::Event::Other,
        call: said.hint("callID").and_then(plain),
        tool: None,
        task: None,
        patience: Patience::Hold,
    })
}

/// One object on standard output, whatever was asked: the plugin throws on `deny`, ends the turn on `stop`, and takes a
/// process that says nothing for a denial.
pub(super) fn answer(verdict: &Verdict) -> Answer {
    let answer: Value = match verdict {
        Verdict::Allow { note: Some(note) } => json!({"decision": "allow", "note": note}),
        Verdict::Allow { note: None } | Verdict::Noted => json!({"decision": "allow"}),
        Verdict::Deny { reason, stop } => json!({"decision": "deny", "reason": reason, "stop": stop}),
    };
    Answer::json(&answer)
}
