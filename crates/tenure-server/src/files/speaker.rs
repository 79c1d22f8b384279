//! For whom a hook speaks: a session, in a process that the system knows.

use std::path::PathBuf;
use std::sync::Arc;

use tenure_core::kernel::{Holder, Introduction};
use tenure_gate::agent::Agent;
use tenure_gate::process::{Process, agent_above};

use super::identity;
use super::local::Local;
use crate::http::answer::Failure;
use crate::http::fields::Fields;

/// The longest name of a session.
const MOST_BYTES: usize = 128;
const GUARD: &str = "guard";
/// What a person is told of a task.
const MOST_TASK: usize = 400;

/// What a hook said about itself.
#[derive(Clone)]
pub(super) struct Spoken {
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) subagent: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) task: Option<String>,
}

/// A session, and the sessions above it that have to be known first.
pub(super) struct Speaker {
    pub(super) own: Introduction,
    pub(super) above: Vec<Introduction>,
}

impl Spoken {
    pub(super) fn read(mut fields: Fields) -> Result<Self, Failure> {
        let spoken = Self {
            agent: fields.text("agent")?,
            session: name(&mut fields, "session")?
                .ok_or_else(|| Failure::invalid("session", "is missing"))?,
            subagent: name(&mut fields, "subagent")?,
            parent: name(&mut fields, "parent")?,
            task: fields.optional_text("task")?.map(|task| task_of(&task)),
        };
        fields.finish()?;
        if !spoken.is_guard() {
            spoken.agent.parse::<Agent>().map_err(|reason| Failure::invalid("agent", &reason))?;
        }
        Ok(spoken)
    }

    /// Whether a guard speaks, for whomever it is.
    pub(super) fn is_guard(&self) -> bool {
        self.agent == GUARD
    }

    /// Who that is. It looks at processes, so not on a thread that others wait for.
    pub(super) fn find(self, local: Local) -> Result<Speaker, Failure> {
        let unknown = |error: std::io::Error| Failure::invalid("speaker", &error.to_string());
        let found = agent_above(local.pid, self.agent.parse().ok()).map_err(unknown)?;
        self.of(&found.process)
    }

    pub(super) fn of(self, owner: &Process) -> Result<Speaker, Failure> {
        let process = identity::text_of(owner);
        let root = id(&self.agent, &self.session, owner);
        let text = |text: &str| -> Arc<str> { text.into() };
        let introduce = |id: String, parent: Option<&str>, session: &str, task: Option<Arc<str>>| {
            Ok::<_, Failure>(Introduction {
                id: Holder::parse(&id)?,
                parent: parent.map(Holder::parse).transpose()?,
                agent: text(&self.agent),
                session: text(session),
                process: text(&process),
                task,
            })
        };
        let task = self.task.as_deref().map(text);
        let Some(subagent) = &self.subagent else {
            return Ok(Speaker { own: introduce(root, None, &self.session, task)?, above: Vec::new() });
        };
        let mut above = vec![introduce(root.clone(), None, &self.session, None)?];
        let mut parent = root.clone();
        if let Some(middle) =
            self.parent.as_ref().filter(|middle| **middle != self.session && *middle != subagent)
        {
            let id = format!("{root}/{middle}");
            above.push(introduce(id.clone(), Some(&root), &self.session, None)?);
            parent = id;
        }
        let id = format!("{root}/{subagent}");
        Ok(Speaker { own: introduce(id, Some(&parent), &self.session, task)?, above })
    }
}

/// The name of a session in the ledger.
pub(super) fn id(agent: &str, session: &str, owner: &Process) -> String {
    format!("{agent}/{session}@{}.{}", owner.pid, owner.started)
}

fn name(fields: &mut Fields, field: &'static str) -> Result<Option<String>, Failure> {
    let Some(text) = fields.optional_text(field)? else { return Ok(None) };
    let is_plain = !text.is_empty() && text.len() <= MOST_BYTES && !text.contains(char::is_control);
    if is_plain {
        return Ok(Some(text));
    }
    Err(Failure::invalid(field, "must have 1 to 128 bytes, and no control characters"))
}

/// For people: on one line, and not too long.
fn task_of(text: &str) -> String {
    let plain: String =
        text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    let mut end = plain.len().min(MOST_TASK);
    while !plain.is_char_boundary(end) {
        end -= 1;
    }
    plain[..end].trim().to_owned()
}

/// A path that does not depend on who asks from where.
pub(super) fn absolute(text: &str, field: &str) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err(Failure::invalid(field, "must be an absolute path")) }
}

/// A list of texts, which may be missing.
pub(super) fn strings(fields: &mut Fields, name: &'static str, most: usize) -> Result<Vec<String>, Failure> {
    let list = fields.optional_list(name)?.unwrap_or_default();
    if list.len() <= most {
        return Ok(list);
    }
    Err(Failure::invalid(name, &format!("has {} entries; at most {most} are allowed", list.len())))
}
