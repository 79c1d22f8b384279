//! Files of a person, and switches of agents.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;

use super::InstallError;
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

/// What Gemini CLI calls our hooks: by this name a person can switch them off.
pub const GEMINI_NAME: &str = "tenure";

/// The switch in these settings, if there is one, that turns ours off.
pub fn switched_off(agent: Agent, text: &str) -> Option<&'static str> {
    switches(agent, text).into_iter().find(|(_, is_off)| *is_off).map(|(name, _)| name)
}

/// The switches that these settings set, and whether each turns our hooks off. A list of what is off says it only where it names
/// ours: lists of several files add up.
pub fn switches(agent: Agent, text: &str) -> Vec<(&'static str, bool)> {
    let known: &[(&str, &str, bool)] = match agent {
        Agent::Claude => &[("/disableAllHooks", "disableAllHooks", true)],
        Agent::Gemini => &[
            ("/hooksConfig/enabled", "hooksConfig.enabled", false),
            ("/hooks/enabled", "hooks.enabled", false),
            ("/tools/enableHooks", "tools.enableHooks", false),
        ],
        Agent::Codex | Agent::Cursor | Agent::OpenCode => &[],
    };
    let Ok(settings) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let said = |pointer: &str| settings.pointer(pointer).and_then(Value::as_bool);
    let mut found: Vec<_> =
        known.iter().filter_map(|(pointer, name, off)| Some((*name, said(pointer)? == *off))).collect();
    if agent == Agent::Gemini {
        let lists =
            [("/hooksConfig/disabled", "hooksConfig.disabled"), ("/hooks/disabled", "hooks.disabled")];
        let names_ours = |pointer| {
            let names = settings.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
            names.filter_map(Value::as_str).any(|name| name == GEMINI_NAME)
        };
        found.extend(lists.into_iter().filter(|(list, _)| names_ours(list)).map(|(_, name)| (name, true)));
    }
    found
}

/// No settings file is larger. What is, is not one.
const MOST_BYTES: u64 = 4 << 20;

/// How many links are followed, as the kernel does.
const MOST_LINKS: usize = 40;

/// What is in the file, or nothing if there is none.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(InstallError::disk(path)(error)),
    };
    let mut content = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut content).map_err(InstallError::disk(path))?;
    if content.len() as u64 > MOST_BYTES {
        let what = format!("it is larger than {MOST_BYTES} bytes");
        return Err(InstallError::Strange { path: path.to_owned(), what });
    }
    Ok(Some(content))
}

/// The file that a name reaches: a link is followed, so that it stays one. Also where the file is not there yet.
pub fn behind_links(path: &Path) -> Result<PathBuf, InstallError> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(InstallError::Strange { path, what: "its links go round in a circle".to_owned() })
}

/// Where a link leads; nothing, if there is none of this name.
pub fn leads_to(path: &Path) -> Option<PathBuf> {
    fs::read_link(path).ok()
}

/// Whether anything has this name, even a link that leads nowhere.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn agent_folders_follow_the_environment_variables() {
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

    #[test]
    fn hooks_are_off_by_a_switch_value_or_by_name_in_a_disabled_list() {
        for (agent, text, off) in [
            (Agent::Claude, r#"{"disableAllHooks": true}"#, Some("disableAllHooks")),
            (Agent::Claude, r#"{"disableAllHooks": false}"#, None),
            (Agent::Gemini, r#"{"hooksConfig": {"enabled": false}}"#, Some("hooksConfig.enabled")),
            (Agent::Gemini, r#"{"hooksConfig": {"disabled": ["tenure"]}}"#, Some("hooksConfig.disabled")),
            (Agent::Gemini, r#"{"hooksConfig": {"disabled": ["tenures", 7]}}"#, None),
            (Agent::Gemini, r#"{"hooks": {"disabled": ["a", "tenure"]}}"#, Some("hooks.disabled")),
            (Agent::Codex, r#"{"hooks": {"disabled": ["tenure"]}}"#, None),
            (Agent::Claude, "{", None),
        ] {
            assert_eq!(switched_off(agent, text), off, "{text}");
        }
    }
}
