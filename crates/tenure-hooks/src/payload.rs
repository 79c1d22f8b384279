//! What most agents say in the same words: session, folder, tool, subagent.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::payload_fields::PayloadFields;
use crate::tools::ToolAccess;
use crate::{HookEvent, HookPayload, HookWaitPolicy, Subagent};

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

/// A payload that was not understood. Says what is wrong, and never repeats what was sent: it may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{kind}")]
pub struct PayloadError {
    kind: PayloadErrorKind,
    is_before_call: bool,
}

impl PayloadError {
    pub(super) fn new(kind: PayloadErrorKind, is_before_call: bool) -> Self {
        Self { kind, is_before_call }
    }

    /// Whether a change may follow if nobody objects. True also where nobody can tell.
    pub fn is_pre_tool_use(&self) -> bool {
        self.is_before_call
    }

    pub fn kind(&self) -> &PayloadErrorKind {
        &self.kind
    }
}

/// What is wrong with a payload.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PayloadErrorKind {
    #[error("the hook was given nothing")]
    Empty,
    /// More than [`super::MAX_PAYLOAD_BYTES`], or more values than any agent sends.
    #[error("the hook was given too much: at most 16 MiB and a million values are read")]
    TooLarge,
    /// Bytes that are not UTF-8.
    #[error("the hook was given bytes that are not UTF-8")]
    NotText,
    /// Text that is not JSON, or nested too deeply.
    #[error("the hook was given something that is not JSON (line {line}, column {column})")]
    NotJson {
        /// Where, counted from 1.
        line: usize,
        column: usize,
    },
    /// One name twice in an object: agent and hook might each believe another one.
    #[error("the hook was given an object with one name twice (line {line}, column {column})")]
    DuplicateName {
        /// Where, counted from 1.
        line: usize,
        column: usize,
    },
    #[error("the hook was given JSON that is not an object")]
    NotAnObject,
    /// A field that is needed is not there.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field is of another type than it should be.
    #[error("`{0}` has the wrong type")]
    WrongType(&'static str),
    /// The id of a session or subagent cannot be one.
    #[error("`{0}` is not an id: 1 to 128 bytes without control characters")]
    BadId(&'static str),
    /// The folder is not an absolute path.
    #[error("`{0}` is not an absolute path")]
    BadFolder(&'static str),
    /// A path that no file can have.
    #[error("a path is empty, holds a NUL byte, or half of a character")]
    BadPath,
    /// A tool that changes files names none.
    #[error("the tool changes files, but it is not said which")]
    NoPath,
    /// More than [`super::MAX_PATHS`].
    #[error("one call names more than 1,000 files")]
    TooManyPaths,
    /// A patch in which no file is named.
    #[error("the patch names no file")]
    EmptyPatch,
    /// A patch in a shell command, where the shell decides which files it is about.
    #[error("the shell decides which files the patch is about")]
    UnclearPatch,
}
