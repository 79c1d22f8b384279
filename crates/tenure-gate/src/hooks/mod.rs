//! What agents say through their hooks, and the one form in which each is answered.
//!
//! Bytes in, values out: nothing here opens a file, starts a process or reads a clock. One file per agent, because what
//! stops one lets another one's edit through.
//!
//! **What cannot be understood is denied** wherever it may stand before a change. [`refuse`] does that; a hook that fails
//! in any other way would let the edit happen.

mod claude;
mod codex;
mod commands;
mod cursor;
mod fields;
mod frame;
mod gemini;
mod opencode;
mod patch;
mod shell;
mod tools;
mod unheard;
mod whereabouts;
pub mod wording;
mod words;

use std::path::PathBuf;

pub use commands::{Answer, Verdict, inherited_shell, runs_a_command};
pub use fields::MOST_BYTES;
pub use tools::MOST_PATHS;
pub use unheard::{Unheard, Wrong};

use crate::agent::Agent;
use fields::Fields;

/// What an agent said through its hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Its session: at most 128 bytes, no control characters.
    pub session: String,
    /// Which of the session's subagents speaks, if one does.
    pub subagent: Option<Subagent>,
    /// The folder that relative paths are meant in; absolute.
    pub cwd: Option<PathBuf>,
    pub event: Event,
    /// The id of the tool call.
    pub call: Option<String>,
    /// The tool, as the agent calls it.
    pub tool: Option<String>,
    /// What it is at, for people: one line of at most 200 characters.
    pub task: Option<String>,
    /// How long the hook may hold the call.
    pub patience: Patience,
}

/// One that works for another one, under that one's session or in one of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subagent {
    /// Its id. Where it has a session of its own, that session.
    pub id: String,
    /// What sort of helper it is.
    pub kind: Option<String>,
    /// The session or subagent that started it. `None`: somebody in [`Heard::session`], more is not said.
    pub parent: Option<String>,
}

/// How long a hook may hold a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Until the one retry is over.
    Hold,
    /// Not at all: the agent goes on by itself and makes a late change behind everybody's back. Deny at once, and let the
    /// retry be asked for.
    Brief,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A session begins or goes on.
    Started,
    /// A person, or whoever stands for one, asked for something.
    Prompted,
    /// A tool is about to change these files.
    Writing {
        /// As the agent wrote them; relative ones are meant in [`Heard::cwd`]. Never empty.
        paths: Vec<PathBuf>,
        /// Whether the whole content is replaced, so that what somebody else wrote in between would be lost.
        whole: bool,
    },
    /// A tool changed these files, or failed to.
    Wrote {
        paths: Vec<PathBuf>,
        failed: bool,
    },
    /// A tool has read these files: from now on the session knows what is in them.
    Read {
        paths: Vec<PathBuf>,
    },
    /// A tool is about to run that changes no file it names: a shell, a search, something unknown.
    Calling,
    /// A sign of life and nothing more.
    Other,
    TurnEnded {
        /// Whether something of it still runs in the background.
        still_working: bool,
    },
    SubagentStarted,
    SubagentEnded,
    Ended {
        reason: String,
    },
}

/// Reads what `agent` wrote to its hook.
///
/// Strict where a mistake would let a change through, and liberal in everything else: unknown events and tools are signs
/// of life, unknown fields are nothing.
pub fn read(agent: Agent, bytes: &[u8]) -> Result<Heard, Unheard> {
    // Nobody knows what an unreadable payload was: it may have stood before a change.
    let fields = Fields::parse(bytes).map_err(|wrong| Unheard::new(wrong, true))?;
    match agent {
        Agent::Claude => claude::read(&fields),
        Agent::Codex => codex::read(&fields),
        Agent::Gemini => gemini::read(&fields),
        Agent::Cursor => cursor::read(&fields),
        Agent::OpenCode => opencode::read(&fields),
    }
}

/// What to print, and how to exit, so that `agent` does as the verdict says.
///
/// Without `heard` nobody knows which event is answered: then a denial takes the form that blocks whatever it is.
pub fn answer(agent: Agent, heard: Option<&Heard>, verdict: &Verdict) -> Answer {
    let event = heard.map(|heard| &heard.event);
    // A denial without a reason counts as none in Codex.
    let verdict = match verdict {
        Verdict::Deny { reason, stop } if reason.trim().is_empty() => {
            &Verdict::Deny { reason: "Denied by Tenure.".to_owned(), stop: *stop }
        }
        other => other,
    };
    match agent {
        Agent::Claude => claude::answer(event, verdict),
        Agent::Codex => codex::answer(event, verdict),
        Agent::Gemini => gemini::answer(event, verdict),
        Agent::Cursor => cursor::answer(event, verdict),
        Agent::OpenCode => opencode::answer(verdict),
    }
}

/// The answer to a payload that was not understood: a denial wherever it may have stood before a change.
pub fn refuse(agent: Agent, unheard: &Unheard) -> Answer {
    let reason = wording::not_understood(unheard);
    if unheard.is_before_a_call() {
        answer(agent, None, &Verdict::Deny { reason, stop: false })
    } else {
        // Something for the log; the agent goes on.
        Answer { stderr: reason, ..answer(agent, None, &Verdict::Noted) }
    }
}
