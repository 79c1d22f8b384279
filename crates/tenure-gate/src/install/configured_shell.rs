//! Whether the person has chosen a shell for an agent. That choice stays.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::agent_settings::shell_variable;
use super::shell_variable::is_set_by_user;
use super::tenure_bash::is_own_shell;
use super::user_folders::read_file;
use super::{InstallContext, InstallScope};
use crate::coding_agent::CodingAgent;

/// What the person says about an agent's shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfiguredShell {
    Unset,
    Set {
        by: String,
    },
    /// There may be one in this file, which has comments, or is no JSON.
    Unclear {
        path: PathBuf,
    },
}

/// What the person says about the shell of an agent that works at `place`. Reads, and changes nothing.
pub fn configured_shell(agent: CodingAgent, place: &InstallContext) -> ConfiguredShell {
    match agent {
        CodingAgent::Claude => claude_preference(place),
        CodingAgent::OpenCode => opencode_preference(place),
        CodingAgent::Codex | CodingAgent::Gemini | CodingAgent::Cursor => ConfiguredShell::Unset,
    }
}

fn claude_preference(place: &InstallContext) -> ConfiguredShell {
    let Some(name) = shell_variable(CodingAgent::Claude) else { return ConfiguredShell::Unset };
    let home = place.user_folders.folder(CodingAgent::Claude).map(|folder| folder.join("settings.json"));
    let project = project(place, &[".claude/settings.json", ".claude/settings.local.json"]);
    // Whichever of them counts more: ours beside it would overrule the person, or be overruled.
    for path in home.into_iter().chain(project) {
        if text(&path).is_some_and(|text| is_set_by_user(&text, name)) {
            return ConfiguredShell::Set { by: format!("`{name}` in `env` in {}", path.display()) };
        }
    }
    let exported = place.chosen_shell.as_ref().filter(|shell| !shell.as_os_str().is_empty());
    match exported.filter(|shell| !is_own_shell(shell)) {
        Some(_) => ConfiguredShell::Set { by: format!("`{name}` in your environment") },
        None => ConfiguredShell::Unset,
    }
}

fn opencode_preference(place: &InstallContext) -> ConfiguredShell {
    let home = place.user_folders.folder(CodingAgent::OpenCode).into_iter();
    let home = home
        .flat_map(|folder| ["config.json", "opencode.json", "opencode.jsonc"].map(|name| folder.join(name)));
    let names = ["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"];
    let mut found = ConfiguredShell::Unset;
    for path in home.chain(project(place, &names)) {
        let Some(text) = text(&path) else { continue };
        match serde_json::from_str::<Value>(&text) {
            Ok(settings) => {
                let shell = settings.get("shell").and_then(Value::as_str).unwrap_or_default();
                if !shell.is_empty() && !is_own_shell(shell) {
                    return ConfiguredShell::Set { by: format!("`shell` in {}", path.display()) };
                }
            }
            // The word alone may be in a comment, or the name of something else.
            Err(_) if text.contains("\"shell\"") => found = ConfiguredShell::Unclear { path },
            Err(_) => {}
        }
    }
    found
}

/// Files of the project, if we are in one.
fn project(place: &InstallContext, names: &[&'static str]) -> Vec<PathBuf> {
    let is_one = place.scope != InstallScope::User;
    names.iter().filter(|_| is_one).map(|name| place.root.join(name)).collect()
}

fn text(path: &Path) -> Option<String> {
    read_file(path).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok())
}
