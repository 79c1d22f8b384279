//! Files of a person, and switches of agents.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;
use tenure_host::coding_agent::CodingAgent;

use super::InstallError;

/// A person's own folders, as the environment says: agents let some of them be chosen there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserFolders {
    /// The home, if there is one.
    pub home: Option<PathBuf>,
    claude: Option<PathBuf>,
    codex: Option<PathBuf>,
    configuration: Option<PathBuf>,
}

impl UserFolders {
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
    pub fn folder(&self, agent: CodingAgent) -> Option<PathBuf> {
        let chosen = match agent {
            CodingAgent::Claude => self.claude.clone(),
            CodingAgent::Codex => self.codex.clone(),
            CodingAgent::OpenCode => self.configuration.as_ref().map(|folder| folder.join("opencode")),
            CodingAgent::Gemini | CodingAgent::Cursor => None,
        };
        let usual = match agent {
            CodingAgent::Claude => ".claude",
            CodingAgent::Codex => ".codex",
            CodingAgent::Gemini => ".gemini",
            CodingAgent::Cursor => ".cursor",
            CodingAgent::OpenCode => ".config/opencode",
        };
        chosen.or_else(|| Some(self.home.as_ref()?.join(usual)))
    }
}

/// What Gemini CLI calls our hooks: by this name a person can switch them off.
pub const GEMINI_NAME: &str = "tenure";

/// The switch in these settings, if there is one, that turns ours off.
pub fn hooks_disabling_setting(agent: CodingAgent, text: &str) -> Option<&'static str> {
    hooks_enablement_settings(agent, text).into_iter().find(|(_, is_off)| *is_off).map(|(name, _)| name)
}

/// The switches that these settings set, and whether each turns our hooks off. A list of what is off says it only where it names
/// ours: lists of several files add up.
pub fn hooks_enablement_settings(agent: CodingAgent, text: &str) -> Vec<(&'static str, bool)> {
    let known: &[(&str, &str, bool)] = match agent {
        CodingAgent::Claude => &[("/disableAllHooks", "disableAllHooks", true)],
        CodingAgent::Gemini => &[
            ("/hooksConfig/enabled", "hooksConfig.enabled", false),
            ("/hooks/enabled", "hooks.enabled", false),
            ("/tools/enableHooks", "tools.enableHooks", false),
        ],
        CodingAgent::Codex | CodingAgent::Cursor | CodingAgent::OpenCode => &[],
    };
    let Ok(settings) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let bool_at = |pointer: &str| settings.pointer(pointer).and_then(Value::as_bool);
    let mut found: Vec<_> =
        known.iter().filter_map(|(pointer, name, off)| Some((*name, bool_at(pointer)? == *off))).collect();
    if agent == CodingAgent::Gemini {
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
const MAX_SETTINGS_BYTES: u64 = 4 << 20;

/// How many links are followed, as the kernel does.
const MAX_LINKS: usize = 40;

/// What is in the file, or nothing if there is none.
pub fn read_file(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(InstallError::io_error(path)(error)),
    };
    let mut content = Vec::new();
    file.take(MAX_SETTINGS_BYTES + 1).read_to_end(&mut content).map_err(InstallError::io_error(path))?;
    if content.len() as u64 > MAX_SETTINGS_BYTES {
        let what = format!("it is larger than {MAX_SETTINGS_BYTES} bytes");
        return Err(InstallError::UnexpectedShape { path: path.to_owned(), what });
    }
    Ok(Some(content))
}

/// The file that a name reaches: a link is followed, so that it stays one. Also where the file is not there yet.
pub fn resolve_links(path: &Path) -> Result<PathBuf, InstallError> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(InstallError::UnexpectedShape { path, what: "its links go round in a circle".to_owned() })
}

/// Where a link leads; nothing, if there is none of this name.
pub fn link_target(path: &Path) -> Option<PathBuf> {
    fs::read_link(path).ok()
}

/// Whether anything has this name, even a link that leads nowhere.
pub fn entry_exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn agent_folders_follow_the_environment_variables() {
        let usual = UserFolders::new(|name| (name == "HOME").then(|| "/home/me".into()));
        let chosen = UserFolders::new(|name| Some(format!("/{}", name.to_lowercase()).into()));
        for (agent, home, elsewhere) in [
            (CodingAgent::Claude, "/home/me/.claude", "/claude_config_dir"),
            (CodingAgent::Codex, "/home/me/.codex", "/codex_home"),
            (CodingAgent::Gemini, "/home/me/.gemini", "/home/.gemini"),
            (CodingAgent::Cursor, "/home/me/.cursor", "/home/.cursor"),
            (CodingAgent::OpenCode, "/home/me/.config/opencode", "/xdg_config_home/opencode"),
        ] {
            assert_eq!(usual.folder(agent).as_deref(), Some(Path::new(home)));
            assert_eq!(chosen.folder(agent).as_deref(), Some(Path::new(elsewhere)));
        }
        assert_eq!(UserFolders::new(|_| Some("relative".into())), UserFolders::default());
        assert_eq!(UserFolders::default().folder(CodingAgent::Claude), None);
    }

    #[test]
    fn hooks_are_off_by_a_switch_value_or_by_name_in_a_disabled_list() {
        for (agent, text, off) in [
            (CodingAgent::Claude, r#"{"disableAllHooks": true}"#, Some("disableAllHooks")),
            (CodingAgent::Claude, r#"{"disableAllHooks": false}"#, None),
            (CodingAgent::Gemini, r#"{"hooksConfig": {"enabled": false}}"#, Some("hooksConfig.enabled")),
            (
                CodingAgent::Gemini,
                r#"{"hooksConfig": {"disabled": ["tenure"]}}"#,
                Some("hooksConfig.disabled"),
            ),
            (CodingAgent::Gemini, r#"{"hooksConfig": {"disabled": ["tenures", 7]}}"#, None),
            (CodingAgent::Gemini, r#"{"hooks": {"disabled": ["a", "tenure"]}}"#, Some("hooks.disabled")),
            (CodingAgent::Codex, r#"{"hooks": {"disabled": ["tenure"]}}"#, None),
            (CodingAgent::Claude, "{", None),
        ] {
            assert_eq!(hooks_disabling_setting(agent, text), off, "{text}");
        }
    }
}
