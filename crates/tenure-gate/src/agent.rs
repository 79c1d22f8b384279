//! The coding agents that are known.

use std::fmt;
use std::str::FromStr;

/// A coding agent. Each is spoken to in its own form: what stops one lets another one's edit through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Agent {
    Claude,
    Codex,
    Gemini,
    Cursor,
    OpenCode,
}

impl Agent {
    pub const ALL: [Agent; 5] = [Agent::Claude, Agent::Codex, Agent::Gemini, Agent::Cursor, Agent::OpenCode];

    /// Its name on the command line and in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::Cursor => "cursor",
            Agent::OpenCode => "opencode",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Agent {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Agent::ALL.map(Agent::as_str).join(", ");
        let found = Agent::ALL.into_iter().find(|agent| agent.as_str() == name);
        found.ok_or_else(|| format!("there is no agent called `{name}`; known are: {}", known()))
    }
}
