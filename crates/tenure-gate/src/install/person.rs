//! Where a person's own settings are, which count in all projects.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::agent::Agent;

/// A person's own folders, as the environment says: agents let some of them be chosen there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Person {
    /// The home, if there is one.
    pub home: Option<PathBuf>,
    claude: Option<PathBuf>,
    codex: Option<PathBuf>,
    configuration: Option<PathBuf>,
}

impl Person {
    /// As these variables say. A path that is not absolute leads to another place in each folder, so it does not count.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        Self {
            home: folder("HOME"),
            claude: folder("CLAUDE_CONFIG_DIR"),
            codex: folder("CODEX_HOME"),
            configuration: folder("XDG_CONFIG_HOME"),
        }
    }

    /// Where this agent looks. Nothing, where nobody says.
    pub fn folder(&self, agent: Agent) -> Option<PathBuf> {
        let chosen = match agent {
            Agent::Claude => self.claude.clone(),
            Agent::Codex => self.codex.clone(),
            Agent::OpenCode => self.configuration.as_ref().map(|folder| folder.join("opencode")),
            Agent::Gemini | Agent::Cursor => None,
        };
        let usual = match agent {
            Agent::Claude => ".claude",
            Agent::Codex => ".codex",
            Agent::Gemini => ".gemini",
            Agent::Cursor => ".cursor",
            Agent::OpenCode => ".config/opencode",
        };
        chosen.or_else(|| Some(self.home.as_ref()?.join(usual)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_agent_is_met_where_it_looks() {
        let usual = Person::new(|name| (name == "HOME").then(|| "/home/me".into()));
        let chosen = Person::new(|name| Some(format!("/{}", name.to_lowercase()).into()));
        for (agent, home, elsewhere) in [
            (Agent::Claude, "/home/me/.claude", "/claude_config_dir"),
            (Agent::Codex, "/home/me/.codex", "/codex_home"),
            (Agent::Gemini, "/home/me/.gemini", "/home/.gemini"),
            (Agent::Cursor, "/home/me/.cursor", "/home/.cursor"),
            (Agent::OpenCode, "/home/me/.config/opencode", "/xdg_config_home/opencode"),
        ] {
            assert_eq!(usual.folder(agent).as_deref(), Some(Path::new(home)));
            assert_eq!(chosen.folder(agent).as_deref(), Some(Path::new(elsewhere)));
        }
        assert_eq!(Person::new(|_| Some("relative".into())), Person::default());
        assert_eq!(Person::default().folder(Agent::Claude), None);
    }
}
