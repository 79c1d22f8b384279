//! What most agents say in the same words: session, folder, tool, subagent.

use std::path::{Path, PathBuf};

use super::payload_error::{PayloadError, PayloadErrorKind};
use super::payload_fields::PayloadFields;
use super::tools::ToolAccess;
use super::{HookEvent, HookPayload, HookWaitPolicy, Subagent};

/// The longest id, in bytes: longer ones cannot be stored as they are.
const MAX_ID_BYTES: usize = 128;

const MAX_EXCERPT_CHARACTERS: usize = 200;

/// Where in the life of a session an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookEventKind {
    Started,
    Prompted,
    Before,
    After { failed: bool },
    TurnEnded { still_working: bool },
    SubagentStarted,
    SubagentEnded,
    Ended,
    Other,
}

impl HookEventKind {
    /// With whether a change may follow, what went wrong is complete.
    pub fn error(self, wrong: PayloadErrorKind) -> PayloadError {
        PayloadError::new(wrong, self == HookEventKind::Before)
    }

    /// What happens at this moment if the tool touches that.
    pub fn to_event(self, touch: ToolAccess, reason: Option<&str>) -> HookEvent {
        match (self, touch) {
            (HookEventKind::Before, ToolAccess::Writes { paths, replaces_content: whole }) => {
                HookEvent::BeforeWrite { paths, replaces_content: whole }
            }
            (HookEventKind::After { failed }, ToolAccess::Writes { paths, .. }) => {
                HookEvent::AfterWrite { paths, failed }
            }
            (HookEventKind::After { failed: false }, ToolAccess::Reads { paths }) if !paths.is_empty() => {
                HookEvent::AfterRead { paths }
            }
            (HookEventKind::Started, _) => HookEvent::Started,
            (HookEventKind::Prompted, _) => HookEvent::Prompted,
            (HookEventKind::TurnEnded { still_working }, _) => HookEvent::TurnEnded { still_working },
            (HookEventKind::SubagentStarted, _) => HookEvent::SubagentStarted,
            (HookEventKind::SubagentEnded, _) => HookEvent::SubagentEnded,
            (HookEventKind::Ended, _) => {
                HookEvent::Ended { reason: reason.and_then(excerpt).unwrap_or_else(|| "unknown".to_owned()) }
            }
            (HookEventKind::Before, _) => HookEvent::BeforeToolCall,
            (HookEventKind::After { .. } | HookEventKind::Other, _) => HookEvent::Other,
        }
    }
}

/// Which event it is. Whoever does not say which may stand before a change.
pub(super) fn event_name<'a>(fields: &'a PayloadFields<'_>) -> Result<&'a str, PayloadError> {
    let name = fields.text("hook_event_name").map_err(|wrong| PayloadError::new(wrong, true))?;
    name.ok_or_else(|| PayloadError::new(PayloadErrorKind::Missing("hook_event_name"), true))
}

/// Reads the fields that most agents share; `touch` says what a tool does with which files.
pub(super) fn parse_common(
    fields: &PayloadFields<'_>,
    moment: HookEventKind,
    touch: impl Fn(&str, &PayloadFields<'_>) -> Result<ToolAccess, PayloadErrorKind>,
) -> Result<HookPayload, PayloadErrorKind> {
    let tool = fields.text("tool_name")?;
    let touched = match (moment, tool) {
        (HookEventKind::Before | HookEventKind::After { .. }, Some(tool)) => {
            touch(tool, &fields.object("tool_input")?.unwrap_or_else(PayloadFields::empty))?
        }
        (HookEventKind::Before, None) => return Err(PayloadErrorKind::Missing("tool_name")),
        _ => ToolAccess::Nothing,
    };
    let subagent = subagent(fields)?;
    let task = match moment {
        HookEventKind::Prompted => fields.lenient_text("prompt").and_then(prompt_excerpt),
        HookEventKind::SubagentStarted => subagent.as_ref().and_then(|subagent| subagent.kind.clone()),
        _ => None,
    };
    Ok(HookPayload {
        session: optional_id(fields, &["session_id", "conversation_id"])?
            .ok_or(PayloadErrorKind::Missing("session_id"))?,
        subagent,
        cwd: optional_folder(fields, "cwd")?,
        event: moment.to_event(touched, fields.lenient_text("reason")),
        call: fields.lenient_text("tool_use_id").and_then(valid_id),
        tool: tool.and_then(excerpt),
        task,
        wait_policy: HookWaitPolicy::WaitForRetry,
    })
}

/// The first of these names that is there.
pub(super) fn optional_id(
    fields: &PayloadFields<'_>,
    names: &[&'static str],
) -> Result<Option<String>, PayloadErrorKind> {
    for name in names {
        if let Some(id) = fields.text(name)? {
            return valid_id(id)
                .filter(|id| !fields.is_truncated(id))
                .map(Some)
                .ok_or(PayloadErrorKind::BadId(name));
        }
    }
    Ok(None)
}

/// The folder under `name`.
pub(super) fn optional_folder(
    fields: &PayloadFields<'_>,
    name: &'static str,
) -> Result<Option<PathBuf>, PayloadErrorKind> {
    let text = fields.text(name)?.filter(|text| !text.is_empty());
    text.map(|text| absolute_folder(fields, name, text)).transpose()
}

/// The folder that `text` is, which stands under `name`.
pub(super) fn absolute_folder(
    fields: &PayloadFields<'_>,
    name: &'static str,
    text: &str,
) -> Result<PathBuf, PayloadErrorKind> {
    let is_folder = Path::new(text).is_absolute() && !text.contains('\0') && !fields.is_truncated(text);
    if is_folder { Ok(PathBuf::from(text)) } else { Err(PayloadErrorKind::BadFolder(name)) }
}

fn subagent(fields: &PayloadFields<'_>) -> Result<Option<Subagent>, PayloadErrorKind> {
    let kind = fields.lenient_text("agent_type").and_then(excerpt);
    Ok(optional_id(fields, &["agent_id"])?.map(|id| Subagent { id, kind, parent: None }))
}

/// `text` if it can be an id.
pub(super) fn valid_id(text: &str) -> Option<String> {
    let fits = !text.is_empty() && text.len() <= MAX_ID_BYTES && !text.chars().any(is_control);
    fits.then(|| text.to_owned())
}

/// The beginning of what was asked for. What the agent tells itself is not what it is at.
pub(super) fn prompt_excerpt(text: &str) -> Option<String> {
    if text.trim_start().starts_with("<task-notification>") { None } else { excerpt(text) }
}

/// The beginning of `text` as one line, for people.
pub(super) fn excerpt(text: &str) -> Option<String> {
    let mut words = text.split(|character: char| character.is_whitespace() || is_control(character));
    let mut line = String::new();
    let mut remaining = MAX_EXCERPT_CHARACTERS;
    while let Some(word) = words.find(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if remaining <= gap {
            break;
        }
        if gap == 1 {
            line.push(' ');
        }
        remaining -= gap;
        line.extend(word.chars().take(remaining));
        remaining = remaining.saturating_sub(word.chars().take(remaining).count());
    }
    (!line.is_empty()).then_some(line)
}

/// Control characters, and those that turn the order of a line around or break it.
fn is_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
