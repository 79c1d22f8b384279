//! The coding agents that are known.

use std::fmt;
use std::str::FromStr;

/// A coding agent. Each is spoken to in its own form: what stops one lets another one's edit through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodingAgent {
    Claude,
    Codex,
    Gemini,
    Cursor,
    OpenCode,
}

impl CodingAgent {
    pub const ALL: [CodingAgent; 5] = [
        CodingAgent::Claude,
        CodingAgent::Codex,
        CodingAgent::Gemini,
        CodingAgent::Cursor,
        CodingAgent::OpenCode,
    ];

    /// Its name on the command line and in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            CodingAgent::Claude => "claude",
            CodingAgent::Codex => "codex",
            CodingAgent::Gemini => "gemini",
            CodingAgent::Cursor => "cursor",
            CodingAgent::OpenCode => "opencode",
        }
    }
}

impl fmt::Display for CodingAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for CodingAgent {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || CodingAgent::ALL.map(CodingAgent::as_str).join(", ");
        let found = CodingAgent::ALL.into_iter().find(|agent| agent.as_str() == name);
        found.ok_or_else(|| format!("there is no agent called `{name}`; known are: {}", known()))
    }
}
