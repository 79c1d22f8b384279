//! Commands of hooks and their verdicts.

use serde_json::Value;

use super::{Event, Heard};
use crate::agent::Agent;

/// What agents call the tools that run a command.
const SHELLS: [&str; 8] = [
    "bash",
    "shell",
    "shell_command",
    "run_shell_command",
    "exec_command",
    "local_shell",
    "unified_exec",
    "container.exec",
];

/// Whether a tool is about to run a command in a shell.
pub fn runs_a_command(agent: Agent, heard: &Heard) -> bool {
    let is_shell = |tool: &String| SHELLS.iter().any(|shell| tool.eq_ignore_ascii_case(shell));
    // Cursor has an event for that, which names no tool.
    let is_event = agent == Agent::Cursor && heard.event == Event::Calling;
    let is_named = heard.tool.as_ref().map_or(is_event, is_shell);
    // A patch in a command names files, and whatever stands beside it does not.
    matches!(heard.event, Event::Calling | Event::Writing { .. }) && is_named
}

/// The variable in which this agent's own environment names its shell, by whatever way it got there.
pub const fn inherited_shell(agent: Agent) -> Option<&'static str> {
    match agent {
        Agent::Claude => Some("CLAUDE_CODE_SHELL"),
        Agent::OpenCode => Some("SHELL"),
        Agent::Codex | Agent::Gemini | Agent::Cursor => None,
    }
}

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

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn shell_commands_are_distinguished_from_other_tools() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/hooks");
        let runs = |agent, name: &str| {
            let payload = std::fs::read(format!("{folder}/{name}.json")).unwrap();
            runs_a_command(agent, &read(agent, &payload).unwrap())
        };
        assert!(runs(Agent::Claude, "claude-PreToolUse-Bash"));
        assert!(runs(Agent::Codex, "codex-PreToolUse-Bash-workdir"));
        assert!(runs(Agent::Codex, "codex-codemode-PreToolUse-Bash"));
        assert!(runs(Agent::Codex, "codex-PreToolUse-Bash-multi"), "a patch in a command is a command too");
        assert!(runs(Agent::Gemini, "gemini-BeforeTool-run_shell_command"));
        assert!(runs(Agent::OpenCode, "opencode-tool.execute.before-bash"));
        assert!(!runs(Agent::Claude, "claude-PostToolUse-Bash"), "it ran already");
        assert!(!runs(Agent::Claude, "claude-PreToolUse-Edit"));
        let shell =
            br#"{"hook_event_name":"beforeShellExecution","conversation_id":"c","command":"ls","cwd":"/"}"#;
        assert!(runs_a_command(Agent::Cursor, &read(Agent::Cursor, shell).unwrap()));
        let read_file = br#"{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Grep","tool_input":{}}"#;
        assert!(!runs_a_command(Agent::Claude, &read(Agent::Claude, read_file).unwrap()));
    }
}
