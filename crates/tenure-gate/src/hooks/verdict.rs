//! What is decided about a call, and what is printed for it.

use serde_json::Value;

/// What is decided about what an agent said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may go on. The agent's own rules still apply: nothing here approves in a person's place.
    Allow {
        /// For the model, where the agent passes it on.
        note: Option<String>,
    },
    Deny {
        /// For the model: see [`super::wording`].
        reason: String,
        /// End the turn too, where the agent lets a hook do that.
        stop: bool,
    },
    Noted,
}

/// What a hook prints, and how it exits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub stdout: String,
    /// For the agent or the person, as the agent likes.
    pub stderr: String,
    pub code: u8,
}

impl Answer {
    pub(super) fn silence() -> Self {
        Self { stdout: String::new(), stderr: String::new(), code: 0 }
    }

    /// Something for the log, and no influence.
    pub(super) fn quiet(text: String) -> Self {
        Self { stderr: text, ..Self::silence() }
    }

    pub(super) fn json(value: &Value) -> Self {
        Self { stdout: value.to_string(), ..Self::silence() }
    }

    /// Exit code 2 with the reason on standard error. Without the reason there, Codex and Gemini go on.
    pub(super) fn blocked(reason: &str) -> Self {
        Self { stdout: String::new(), stderr: reason.to_owned(), code: 2 }
    }
}
