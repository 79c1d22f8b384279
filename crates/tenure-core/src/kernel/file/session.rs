//! A session of a coding agent, and what it left behind.

use std::sync::Arc;

use super::decide::push_file_event;
use crate::kernel::admission::AdmissionLevel;
use crate::kernel::file::{FileEvent, FileOutcome, FileSessionActivity, files_principal};
use crate::kernel::lease::decision_builder::DecisionBuilder;
use crate::kernel::outcome::Rejection;
use crate::rules::{InvalidInput, is_expired, is_storable_text};
use crate::value::{Holder, MAX_FILE_SESSIONS, MIN_SEEN_INTERVAL, RecordedProcess, Tick};

/// A session of a coding agent that lives, or a subagent of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSession {
    /// Its name, and the holder of its leases.
    pub id: Holder,
    /// Whose leases it may use as well: it is a subagent of that one.
    pub parent: Option<Holder>,
    /// Which agent, such as `claude`.
    pub agent: Arc<str>,
    /// What that agent calls the session.
    pub session: Arc<str>,
    /// The process whose end is the end of the session.
    pub process: RecordedProcess,
    /// What it is at, for people; may be empty.
    pub task: Arc<str>,
    pub began_at: Tick,
    /// When it was last heard of. It may be heard of again within a second without a record.
    pub seen_at: Tick,
    /// Its turn is over since then, and nothing was heard of it since.
    pub turn_ended_at: Option<Tick>,
}

impl FileSession {
    /// A session that begins, as it introduced itself.
    pub fn begin(info: &FileSessionInfo, at: Tick) -> Self {
        Self {
            id: info.id.clone(),
            parent: info.parent.clone(),
            agent: info.agent.clone(),
            session: info.session.clone(),
            process: info.process.clone(),
            task: info.task.clone().unwrap_or_else(|| "".into()),
            began_at: at,
            seen_at: at,
            turn_ended_at: None,
        }
    }

    /// Who it is, for records that outlive it.
    pub fn owner(&self) -> FileOwner {
        FileOwner {
            holder: self.id.clone(),
            agent: self.agent.clone(),
            session: self.session.clone(),
            process: self.process.clone(),
            task: self.task.clone(),
        }
    }
}

/// Who speaks. A session begins with the first that is heard of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSessionInfo {
    pub id: Holder,
    /// Of whom it is a subagent. That one is known.
    pub parent: Option<Holder>,
    pub agent: Arc<str>,
    /// What that agent calls the session.
    pub session: Arc<str>,
    pub process: RecordedProcess,
    /// What it is at now; nothing leaves that as it was.
    pub task: Option<Arc<str>>,
}

impl FileSessionInfo {
    /// A session of which nothing else is known yet.
    pub fn new(id: Holder, process: RecordedProcess) -> Self {
        Self { id, parent: None, agent: "".into(), session: "".into(), process, task: None }
    }

    /// How many bytes its names have, but for what it is at.
    pub(crate) fn byte_size(&self) -> usize {
        let parent = self.parent.as_ref().map_or(0, |parent| parent.as_str().len());
        self.id.as_str().len() + parent + self.agent.len() + self.session.len() + self.process.byte_size()
    }
}

/// Who has or had something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOwner {
    pub holder: Holder,
    /// Which agent; empty if it is none.
    pub agent: Arc<str>,
    /// What that agent calls the session; may be empty.
    pub session: Arc<str>,
    /// Empty if it is none of a file session.
    pub process: RecordedProcess,
    /// What it was at; may be empty.
    pub task: Arc<str>,
}

impl FileOwner {
    /// Somebody of whom nothing but its name is known.
    pub fn from_holder(holder: Holder) -> FileOwner {
        let none = || Arc::from("");
        FileOwner {
            holder,
            agent: none(),
            session: none(),
            process: RecordedProcess::default(),
            task: none(),
        }
    }

    pub(crate) fn byte_size(&self) -> usize {
        let texts = self.agent.len() + self.session.len() + self.process.byte_size() + self.task.len();
        self.holder.as_str().len() + texts
    }
}

/// A file that its owner let go of without a commit. Whoever has it next is told: it may be dirty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedFile {
    pub owner: FileOwner,
    pub at: Tick,
}

pub(super) fn record_activity(
    decision: &mut DecisionBuilder<'_>,
    session: &FileSessionInfo,
    sign: FileSessionActivity,
) -> Result<FileOutcome, Rejection> {
    upsert_session(decision, session, sign)?;
    Ok(FileOutcome::Acknowledged)
}

/// Notes that a session is there. Who says the same twice within a second says nothing new.
pub(super) fn upsert_session(
    decision: &mut DecisionBuilder<'_>,
    session: &FileSessionInfo,
    sign: FileSessionActivity,
) -> Result<(), Rejection> {
    check(session)?;
    let (state, now) = (decision.state, decision.now);
    let Some(known) = state.file_session(&session.id) else {
        decision.check_has_space()?;
        check_can_start_session(decision, session)?;
        // One event has one form: who is at nothing says nothing.
        let task = session.task.clone().filter(|task| !task.is_empty());
        let session = FileSessionInfo { task, ..session.clone() };
        let id = session.id.clone();
        push_file_event(decision, FileEvent::Began { session, at: now });
        if sign == FileSessionActivity::TurnEnded {
            push_file_event(decision, FileEvent::TurnEnded { session: id, at: now });
        }
        return Ok(());
    };
    // A name is for one process: another one of the same name is somebody else.
    if known.process != session.process || known.parent != session.parent {
        return Err(Rejection::HolderTaken { holder: session.id.clone() });
    }
    let id = session.id.clone();
    match sign {
        FileSessionActivity::TurnEnded if known.turn_ended_at.is_none() => {
            push_file_event(decision, FileEvent::TurnEnded { session: id, at: now });
        }
        FileSessionActivity::TurnEnded => {}
        FileSessionActivity::Active | FileSessionActivity::Background => {
            let task = session.task.clone().filter(|task| *task != known.task);
            let is_new = known.turn_ended_at.is_some()
                || task.is_some()
                || is_expired(now.0, known.seen_at.saturating_add(MIN_SEEN_INTERVAL).0);
            // Without room, what only says when it was last heard of is not written. That it is at work again has to be: it
            // would else lose what it has as one that rests.
            let has_space = state.admission_level() >= AdmissionLevel::Renewals;
            if is_new && !has_space && known.turn_ended_at.is_some() {
                return Err(Rejection::NoSpace);
            }
            if is_new && has_space {
                push_file_event(decision, FileEvent::Seen { session: id.clone(), at: now, task });
                if sign == FileSessionActivity::Background && known.turn_ended_at.is_some() {
                    push_file_event(decision, FileEvent::TurnEnded { session: id, at: now });
                }
            }
        }
    }
    Ok(())
}

fn check(session: &FileSessionInfo) -> Result<(), Rejection> {
    let texts = [("agent", &session.agent), ("session", &session.session)];
    let task = session.task.iter().map(|task| ("task", task));
    for (field, text) in texts.into_iter().chain(task) {
        if !is_storable_text(text) {
            let reason = "has over 4096 bytes, or a control character";
            return Err(InvalidInput::new(field, reason).into());
        }
    }
    if session.process.is_empty() {
        let reason = "is empty; a session lives as long as its process, so it has one";
        return Err(InvalidInput::new("process", reason).into());
    }
    Ok(())
}

fn check_can_start_session(
    decision: &DecisionBuilder<'_>,
    session: &FileSessionInfo,
) -> Result<(), Rejection> {
    let state = decision.state;
    let holds = state.find_holder(&session.id).is_some_and(|slot| !state.is_holder_idle(slot));
    let is_free = state.can_use_holder(&session.id, &files_principal(), decision.now)
        && !holds
        && state.agent(&session.id).is_none()
        && state.intent_session(&session.id).is_none();
    if !is_free {
        return Err(Rejection::HolderTaken { holder: session.id.clone() });
    }
    if session.parent.as_ref().is_some_and(|parent| state.file_session(parent).is_none()) {
        return Err(Rejection::NoSuchSession);
    }
    if state.file_session_count() >= MAX_FILE_SESSIONS {
        return Err(Rejection::TooManySessions { max: MAX_FILE_SESSIONS });
    }
    Ok(())
}
