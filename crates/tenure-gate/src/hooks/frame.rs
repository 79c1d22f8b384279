//! What most agents say in the same words: session, folder, tool, subagent.

use std::path::{Path, PathBuf};

use super::fields::Fields;
use super::tools::Touch;
use super::unheard::{Unheard, Wrong};
use super::{Event, Heard, Patience, Subagent};

/// The longest id, in bytes: longer ones cannot be stored as they are.
const MOST_ID: usize = 128;

const MOST_EXCERPT: usize = 200;

/// Where in the life of a session an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
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

impl Moment {
    /// With whether a change may follow, what went wrong is complete.
    pub fn unheard(self, wrong: Wrong) -> Unheard {
        Unheard::new(wrong, self == Moment::Before)
    }

    /// What happens at this moment if the tool touches that.
    pub fn event(self, touch: Touch, reason: Option<&str>) -> Event {
        match (self, touch) {
            (Moment::Before, Touch::Writes { paths, whole }) => Event::Writing { paths, whole },
            (Moment::After { failed }, Touch::Writes { paths, .. }) => Event::Wrote { paths, failed },
            (Moment::After { failed: false }, Touch::Reads { paths }) if !paths.is_empty() => {
                Event::Read { paths }
            }
            (Moment::Started, _) => Event::Started,
            (Moment::Prompted, _) => Event::Prompted,
            (Moment::TurnEnded { still_working }, _) => Event::TurnEnded { still_working },
            (Moment::SubagentStarted, _) => Event::SubagentStarted,
            (Moment::SubagentEnded, _) => Event::SubagentEnded,
            (Moment::Ended, _) => {
                Event::Ended { reason: reason.and_then(excerpt).unwrap_or_else(|| "unknown".to_owned()) }
            }
            (Moment::Before, _) => Event::Calling,
            (Moment::After { .. } | Moment::Other, _) => Event::Other,
        }
    }
}

/// Which event it is. Whoever does not say which may stand before a change.
pub(super) fn event_name<'a>(fields: &'a Fields<'_>) -> Result<&'a str, Unheard> {
    let name = fields.text("hook_event_name").map_err(|wrong| Unheard::new(wrong, true))?;
    name.ok_or_else(|| Unheard::new(Wrong::Missing("hook_event_name"), true))
}

/// Reads the fields that most agents share; `touch` says what a tool does with which files.
pub(super) fn hear(
    fields: &Fields<'_>,
    moment: Moment,
    touch: impl Fn(&str, &Fields<'_>) -> Result<Touch, Wrong>,
) -> Result<Heard, Wrong> {
    let tool = fields.text("tool_name")?;
    let touched = match (moment, tool) {
        (Moment::Before | Moment::After { .. }, Some(tool)) => {
            touch(tool, &fields.object("tool_input")?.unwrap_or_else(Fields::none))?
        }
        (Moment::Before, None) => return Err(Wrong::Missing("tool_name")),
        _ => Touch::Nothing,
    };
    let subagent = subagent(fields)?;
    let task = match moment {
        Moment::Prompted => fields.hint("prompt").and_then(prompt),
        Moment::SubagentStarted => subagent.as_ref().and_then(|subagent| subagent.kind.clone()),
        _ => None,
    };
    Ok(Heard {
        session: id(fields, &["session_id", "conversation_id"])?.ok_or(Wrong::Missing("session_id"))?,
        subagent,
        cwd: folder(fields, "cwd")?,
        event: moment.event(touched, fields.hint("reason")),
        call: fields.hint("tool_use_id").and_then(plain),
        tool: tool.and_then(excerpt),
        task,
        patience: Patience::Hold,
    })
}

/// The first of these names that is there.
pub(super) fn id(fields: &Fields<'_>, names: &[&'static str]) -> Result<Option<String>, Wrong> {
    for name in names {
        if let Some(id) = fields.text(name)? {
            return plain(id).filter(|id| !fields.is_cut(id)).map(Some).ok_or(Wrong::BadId(name));
        }
    }
    Ok(None)
}

/// The folder under `name`.
pub(super) fn folder(fields: &Fields<'_>, name: &'static str) -> Result<Option<PathBuf>, Wrong> {
    let text = fields.text(name)?.filter(|text| !text.is_empty());
    text.map(|text| absolute(fields, name, text)).transpose()
}

/// The folder that `text` is, which stands under `name`.
pub(super) fn absolute(fields: &Fields<'_>, name: &'static str, text: &str) -> Result<PathBuf, Wrong> {
    let is_folder = Path::new(text).is_absolute() && !text.contains('\0') && !fields.is_cut(text);
    if is_folder { Ok(PathBuf::from(text)) } else { Err(Wrong::BadFolder(name)) }
}

fn subagent(fields: &Fields<'_>) -> Result<Option<Subagent>, Wrong> {
    let kind = fields.hint("agent_type").and_then(excerpt);
    Ok(id(fields, &["agent_id"])?.map(|id| Subagent { id, kind, parent: None }))
}

/// `text` if it can be an id.
pub(super) fn plain(text: &str) -> Option<String> {
    let fits = !text.is_empty() && text.len() <= MOST_ID && !text.chars().any(is_control);
    fits.then(|| text.to_owned())
}

/// The beginning of what was asked for. What the agent tells itself is not what it is at.
pub(super) fn prompt(text: &str) -> Option<String> {
    if text.trim_start().starts_with("<task-notification>") { None } else { excerpt(text) }
}

/// The beginning of `text` as one line, for people.
pub(super) fn excerpt(text: &str) -> Option<String> {
    let mut words = text.split(|character: char| character.is_whitespace() || is_control(character));
    let mut line = String::new();
    let mut room = MOST_EXCERPT;
    while let Some(word) = words.find(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if room <= gap {
            break;
        }
        if gap == 1 {
            line.push(' ');
        }
        room -= gap;
        line.extend(word.chars().take(room));
        room = room.saturating_sub(word.chars().take(room).count());
    }
    (!line.is_empty()).then_some(line)
}

/// Control characters, and those that turn the order of a line around or break it.
fn is_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
