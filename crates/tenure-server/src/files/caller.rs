//! For whom a hook speaks: a session, in a process that the system knows.

use std::path::PathBuf;
use std::sync::Arc;

use tenure_core::kernel::{FileSessionInfo, Holder, ProcessId};
use tenure_gate::coding_agent::CodingAgent;
use tenure_gate::process::ancestor_agent;

use super::local_process::LocalProcess;
use crate::http::fields::Fields;
use crate::http::response::HttpError;

/// The longest name of a session.
const MAX_NAME_BYTES: usize = 128;
const GUARD: &str = "guard";
/// What a person is told of a task.
const MAX_TASK_BYTES: usize = 400;

/// What a hook said about itself.
#[derive(Clone)]
pub(super) struct HookIdentity {
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) subagent: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) task: Option<String>,
}

/// A session, and the sessions above it that have to be known first.
pub(super) struct ResolvedFileCaller {
    pub(super) own: FileSessionInfo,
    pub(super) above: Vec<FileSessionInfo>,
}

impl HookIdentity {
    pub(super) fn read(mut fields: Fields) -> Result<Self, HttpError> {
        let spoken = Self {
            agent: fields.text("agent")?,
            session: name(&mut fields, "session")?
                .ok_or_else(|| HttpError::invalid("session", "is missing"))?,
            subagent: name(&mut fields, "subagent")?,
            parent: name(&mut fields, "parent")?,
            task: fields.optional_text("task")?.map(|task| task_of(&task)),
        };
        fields.reject_remaining()?;
        if !spoken.is_guard() {
            spoken.agent.parse::<CodingAgent>().map_err(|reason| HttpError::invalid("agent", &reason))?;
        }
        Ok(spoken)
    }

    /// Whether a guard speaks, for whomever it is.
    pub(super) fn is_guard(&self) -> bool {
        self.agent == GUARD
    }

    /// Who that is. It looks at processes, so not on a thread that others wait for.
    pub(super) fn resolve(self, local: LocalProcess) -> Result<ResolvedFileCaller, HttpError> {
        let unknown = |error: std::io::Error| HttpError::invalid("speaker", &error.to_string());
        let found = ancestor_agent(local.pid, self.agent.parse().ok()).map_err(unknown)?;
        self.for_process(&found.process)
    }

    pub(super) fn for_process(self, owner: &ProcessId) -> Result<ResolvedFileCaller, HttpError> {
        let root = session_id(&self.agent, &self.session, owner);
        let text = |text: &str| -> Arc<str> { text.into() };
        let introduction = |id: String, parent: Option<&str>, session: &str, task: Option<Arc<str>>| {
            Ok::<_, HttpError>(FileSessionInfo {
                id: Holder::parse(&id)?,
                parent: parent.map(Holder::parse).transpose()?,
                agent: text(&self.agent),
                session: text(session),
                process: (*owner).into(),
                task,
            })
        };
        let task = self.task.as_deref().map(text);
        let Some(subagent) = &self.subagent else {
            return Ok(ResolvedFileCaller {
                own: introduction(root, None, &self.session, task)?,
                above: Vec::new(),
            });
        };
        let mut above = vec![introduction(root.clone(), None, &self.session, None)?];
        let mut parent = root.clone();
        if let Some(middle) =
            self.parent.as_ref().filter(|middle| **middle != self.session && *middle != subagent)
        {
            let id = format!("{root}/{middle}");
            above.push(introduction(id.clone(), Some(&root), &self.session, None)?);
            parent = id;
        }
        let id = format!("{root}/{subagent}");
        Ok(ResolvedFileCaller { own: introduction(id, Some(&parent), &self.session, task)?, above })
    }
}

/// The name of a session in the ledger.
pub(super) fn session_id(agent: &str, session: &str, owner: &ProcessId) -> String {
    format!("{agent}/{session}@{}.{}", owner.pid, owner.started)
}

fn name(fields: &mut Fields, field: &'static str) -> Result<Option<String>, HttpError> {
    let Some(text) = fields.optional_text(field)? else { return Ok(None) };
    let is_plain = !text.is_empty() && text.len() <= MAX_NAME_BYTES && !text.contains(char::is_control);
    if is_plain {
        return Ok(Some(text));
    }
    Err(HttpError::invalid(field, "must have 1 to 128 bytes, and no control characters"))
}

/// For people: on one line, and not too long.
fn task_of(text: &str) -> String {
    let plain: String =
        text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    let mut end = plain.len().min(MAX_TASK_BYTES);
    while !plain.is_char_boundary(end) {
        end -= 1;
    }
    plain[..end].trim().to_owned()
}

/// A path that does not depend on who asks from where.
pub(super) fn parse_absolute_path(text: &str, field: &str) -> Result<PathBuf, HttpError> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err(HttpError::invalid(field, "must be an absolute path")) }
}

/// A list of texts, which may be missing.
pub(super) fn take_string_list(
    fields: &mut Fields,
    name: &'static str,
    max_entries: usize,
) -> Result<Vec<String>, HttpError> {
    let list = fields.optional_list(name)?.unwrap_or_default();
    if list.len() <= max_entries {
        return Ok(list);
    }
    Err(HttpError::invalid(name, &format!("has {} entries; at most {max_entries} are allowed", list.len())))
}
