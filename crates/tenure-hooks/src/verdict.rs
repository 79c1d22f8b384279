//! Commands of hooks and their verdicts.

use serde_json::Value;
use tenure_host::coding_agent::CodingAgent;

use crate::{HookEvent, HookPayload};

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
pub fn is_shell_tool_call(agent: CodingAgent, payload: &HookPayload) -> bool {
    let is_shell = |tool: &String| SHELLS.iter().any(|shell| tool.eq_ignore_ascii_case(shell));
    // Cursor has an event for that, which names no tool.
    let is_event = agent == CodingAgent::Cursor && payload.event == HookEvent::BeforeToolCall;
    let is_named = payload.tool.as_ref().map_or(is_event, is_shell);
    // A patch in a command names files, and whatever stands beside it does not.
    matches!(payload.event, HookEvent::BeforeToolCall | HookEvent::BeforeWrite { .. }) && is_named
}

/// The variable in which this agent's own environment names its shell, by whatever way it got there.
pub const fn inherited_shell_variable(agent: CodingAgent) -> Option<&'static str> {
    match agent {
        CodingAgent::Claude => Some("CLAUDE_CODE_SHELL"),
        CodingAgent::OpenCode => Some("SHELL"),
        CodingAgent::Codex | CodingAgent::Gemini | CodingAgent::Cursor => None,
    }
}

/// What is decided about what an agent said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    /// It may go on. The agent's own rules still apply: nothing here approves in a person's place.
    Allow {
        /// For the model, where the agent passes it on.
        message: Option<String>,
    },
    Deny {
        /// For the model: see [`super::messages`].
        reason: String,
        /// End the turn too, where the agent lets a hook do that.
        stop: bool,
    },
    Acknowledge,
}

/// What a hook prints, and how it exits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookResponse {
    pub stdout: String,
    /// For the agent or the person, as the agent likes.
    pub stderr: String,
    pub code: u8,
}

impl HookResponse {
    pub(super) fn empty() -> Self {
        Self { stdout: String::new(), stderr: String::new(), code: 0 }
    }

    /// Something for the log, and no influence.
    pub(super) fn log_only(text: String) -> Self {
        Self { stderr: text, ..Self::empty() }
    }

    pub(super) fn json(value: &Value) -> Self {
        Self { stdout: value.to_string(), ..Self::empty() }
    }

    /// Exit code 2 with the reason on standard error. Without the reason there, Codex and Gemini go on.
    pub(super) fn blocked(reason: &str) -> Self {
        Self { stdout: String::new(), stderr: reason.to_owned(), code: 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_payload;
    use super::*;

    #[test]
    fn shell_commands_are_distinguished_from_other_tools() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/hooks");
        let runs = |agent, name: &str| {
            let payload = std::fs::read(format!("{folder}/{name}.json")).unwrap();
            is_shell_tool_call(agent, &parse_payload(agent, &payload).unwrap())
        };
        assert!(runs(CodingAgent::Claude, "claude-PreToolUse-Bash"));
        assert!(runs(CodingAgent::Codex, "codex-PreToolUse-Bash-workdir"));
        assert!(runs(CodingAgent::Codex, "codex-codemode-PreToolUse-Bash"));
        assert!(
            runs(CodingAgent::Codex, "codex-PreToolUse-Bash-multi"),
            "a patch in a command is a command too"
        );
        assert!(runs(CodingAgent::Gemini, "gemini-BeforeTool-run_shell_command"));
        assert!(runs(CodingAgent::OpenCode, "opencode-tool.execute.before-bash"));
        assert!(!runs(CodingAgent::Claude, "claude-PostToolUse-Bash"), "it ran already");
        assert!(!runs(CodingAgent::Claude, "claude-PreToolUse-Edit"));
        let shell =
            br#"{"hook_event_name":"beforeShellExecution","conversation_id":"c","command":"ls","cwd":"/"}"#;
        assert!(is_shell_tool_call(CodingAgent::Cursor, &parse_payload(CodingAgent::Cursor, shell).unwrap()));
        let read_file = br#"{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Grep","tool_input":{}}"#;
        assert!(!is_shell_tool_call(
            CodingAgent::Claude,
            &parse_payload(CodingAgent::Claude, read_file).unwrap()
        ));
    }
}
