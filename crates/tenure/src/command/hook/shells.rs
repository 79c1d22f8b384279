//! The shell in which an agent's command is about to run: whether it asks before the command changes a file.

use std::path::PathBuf;

use tenure_gate::agent::Agent;
use tenure_gate::hooks::inherited_shell;

use crate::configuration::variable;
use crate::guard;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shell {
    Asks,
    /// It does not, and only the audit sees what the command changes.
    DoesNotAsk,
    /// It would, but it is not there: the agent takes another one without a word.
    Gone(PathBuf),
}

/// The shell of this agent, by what we inherited from it.
pub fn of(agent: Agent) -> Shell {
    if guard::is_watched() {
        return Shell::Asks;
    }
    let named = inherited_shell(agent).and_then(variable).map(PathBuf::from);
    match named.filter(|shell| guard::is_shim(shell)) {
        Some(shell) if shell.exists() => Shell::Asks,
        Some(shell) => Shell::Gone(shell),
        None => Shell::DoesNotAsk,
    }
}
