//! Hooks of coding agents: parses their payloads, renders their responses, and installs them.
//!
//! All but `install/` takes bytes and returns values: it opens no file, starts no process and reads no clock. There is one
//! file per agent, because a response that stops one agent lets the edit of another through.
//!
//! **A payload that cannot be parsed is denied** wherever it may come before a change. [`reject_payload`] does that; a hook
//! that fails in any other way would let the edit happen.

mod apply_patch;
mod claude;
mod codex;
mod cursor;
mod cwd;
mod gemini;
pub mod install;
pub mod interception_coverage;
pub mod messages;
mod opencode;
mod payload;
mod payload_fields;
mod shell_script;
mod tokenizer;
mod tools;
mod verdict;

use std::path::PathBuf;

pub use payload::{PayloadError, PayloadErrorKind};
pub use payload_fields::MAX_PAYLOAD_BYTES;
use payload_fields::PayloadFields;
use tenure_host::coding_agent::CodingAgent;
pub use tools::MAX_PATHS;
pub use verdict::{HookResponse, HookVerdict, inherited_shell_variable, is_shell_tool_call};

/// What an agent said through its hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPayload {
    /// Its session: at most 128 bytes, no control characters.
    pub session: String,
    /// Which of the session's subagents speaks, if one does.
    pub subagent: Option<Subagent>,
    /// The folder that relative paths are meant in; absolute.
    pub cwd: Option<PathBuf>,
    pub event: HookEvent,
    /// The id of the tool call.
    pub call: Option<String>,
    /// The tool, as the agent calls it.
    pub tool: Option<String>,
    /// What it is at, for people: one line of at most 200 characters.
    pub task: Option<String>,
    /// How long the hook may hold the call.
    pub wait_policy: HookWaitPolicy,
}

/// One that works for another one, under that one's session or in one of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subagent {
    /// Its id. Where it has a session of its own, that session.
    pub id: String,
    /// What sort of helper it is.
    pub kind: Option<String>,
    /// The session or subagent that started it. `None`: somebody in [`HookPayload::session`], more is not said.
    pub parent: Option<String>,
}

/// How long a hook may hold a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookWaitPolicy {
    /// Until the one retry is over.
    WaitForRetry,
    /// Not at all: the agent goes on by itself and makes a late change behind everybody's back. Deny at once, and let the
    /// retry be asked for.
    DenyImmediately,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEvent {
    /// A session begins or goes on.
    Started,
    /// A person, or whoever stands for one, asked for something.
    Prompted,
    /// A tool is about to change these files.
    BeforeWrite {
        /// As the agent wrote them; relative ones are meant in [`HookPayload::cwd`]. Never empty.
        paths: Vec<PathBuf>,
        /// Whether the whole content is replaced, so that what somebody else wrote in between would be lost.
        replaces_content: bool,
    },
    /// A tool changed these files, or failed to.
    AfterWrite {
        paths: Vec<PathBuf>,
        failed: bool,
    },
    /// A tool has read these files: from now on the session knows what is in them.
    AfterRead {
        paths: Vec<PathBuf>,
    },
    /// A tool is about to run that changes no file it names: a shell, a search, something unknown.
    BeforeToolCall,
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
pub fn parse_payload(agent: CodingAgent, bytes: &[u8]) -> Result<HookPayload, PayloadError> {
    // Nobody knows what an unreadable payload was: it may have stood before a change.
    let fields = PayloadFields::parse(bytes).map_err(|wrong| PayloadError::new(wrong, true))?;
    match agent {
        CodingAgent::Claude => claude::parse(&fields),
        CodingAgent::Codex => codex::parse(&fields),
        CodingAgent::Gemini => gemini::parse(&fields),
        CodingAgent::Cursor => cursor::parse(&fields),
        CodingAgent::OpenCode => opencode::parse(&fields),
    }
}

/// What to print, and how to exit, so that `agent` does as the verdict says.
///
/// Without `payload` nobody knows which event is answered: then a denial takes the form that blocks whatever it is.
pub fn render_response(
    agent: CodingAgent,
    payload: Option<&HookPayload>,
    verdict: &HookVerdict,
) -> HookResponse {
    let event = payload.map(|payload| &payload.event);
    // A denial without a reason counts as none in Codex.
    let verdict = match verdict {
        HookVerdict::Deny { reason, stop } if reason.trim().is_empty() => {
            &HookVerdict::Deny { reason: "Denied by Tenure.".to_owned(), stop: *stop }
        }
        other => other,
    };
    match agent {
        CodingAgent::Claude => claude::render_response(event, verdict),
        CodingAgent::Codex => codex::render_response(event, verdict),
        CodingAgent::Gemini => gemini::render_response(event, verdict),
        CodingAgent::Cursor => cursor::render_response(event, verdict),
        CodingAgent::OpenCode => opencode::render_response(verdict),
    }
}

/// The answer to a payload that was not understood: a denial wherever it may have stood before a change.
pub fn reject_payload(agent: CodingAgent, unheard: &PayloadError) -> HookResponse {
    let reason = messages::payload_rejected_message(unheard);
    if unheard.is_pre_tool_use() {
        render_response(agent, None, &HookVerdict::Deny { reason, stop: false })
    } else {
        // Something for the log; the agent goes on.
        HookResponse { stderr: reason, ..render_response(agent, None, &HookVerdict::Acknowledge) }
    }
}
