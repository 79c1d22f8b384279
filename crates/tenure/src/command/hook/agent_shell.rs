//! The shell in which an agent's command is about to run: whether it asks before the command changes a file.

use std::path::PathBuf;

use tenure_gate::coding_agent::CodingAgent;
use tenure_gate::hooks::inherited_shell_variable;

use crate::configuration::variable;
use crate::guard;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentShell {
    Guarded,
    /// It does not, and only the audit sees what the command changes.
    Unguarded,
    /// It would, but it is not there: the agent takes another one without a word.
    Missing(PathBuf),
}

/// The shell of this agent, by what we inherited from it.
pub fn detect(agent: CodingAgent) -> AgentShell {
    if guard::is_guarded() {
        return AgentShell::Guarded;
    }
    let named = inherited_shell_variable(agent).and_then(variable).map(PathBuf::from);
    match named.filter(|shell| guard::is_tenure_bash(shell)) {
        Some(shell) if shell.exists() => AgentShell::Guarded,
        Some(shell) => AgentShell::Missing(shell),
        None => AgentShell::Unguarded,
    }
}
