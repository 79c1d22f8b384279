//! Whether the person has chosen a shell for an agent. That choice stays.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::agents::shell_variable;
use super::person::read;
use super::shell::is_ours;
use super::variable::is_chosen;
use super::{Place, Scope};
use crate::agent::Agent;

/// What the person says about an agent's shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    Free,
    Made {
        by: String,
    },
    /// There may be one in this file, which has comments, or is no JSON.
    Unclear {
        path: PathBuf,
    },
}

/// What the person says about the shell of an agent that works at `place`. Reads, and changes nothing.
pub fn choice(agent: Agent, place: &Place) -> Choice {
    match agent {
        Agent::Claude => of_claude(place),
        Agent::OpenCode => of_opencode(place),
        Agent::Codex | Agent::Gemini | Agent::Cursor => Choice::Free,
    }
}

fn of_claude(place: &Place) -> Choice {
    let Some(name) = shell_variable(Agent::Claude) else { return Choice::Free };
    let home = place.person.folder(Agent::Claude).map(|folder| folder.join("settings.json"));
    let project = project(place, &[".claude/settings.json", ".claude/settings.local.json"]);
    // Whichever of them counts more: ours beside it would overrule the person, or be overruled.
    for path in home.into_iter().chain(project) {
        if text(&path).is_some_and(|text| is_chosen(&text, name)) {
            return Choice::Made { by: format!("`{name}` in `env` in {}", path.display()) };
        }
    }
    let exported = place.chosen_shell.as_ref().filter(|shell| !shell.as_os_str().is_empty());
    match exported.filter(|shell| !is_ours(shell)) {
        Some(_) => Choice::Made { by: format!("`{name}` in your environment") },
        None => Choice::Free,
    }
}

fn of_opencode(place: &Place) -> Choice {
    let home = place.person.folder(Agent::OpenCode).into_iter();
    let home = home
        .flat_map(|folder| ["config.json", "opencode.json", "opencode.jsonc"].map(|name| folder.join(name)));
    let names = ["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"];
    let mut found = Choice::Free;
    for path in home.chain(project(place, &names)) {
        let Some(text) = text(&path) else { continue };
        match serde_json::from_str::<Value>(&text) {
            Ok(settings) => {
                let shell = settings.get("shell").and_then(Value::as_str).unwrap_or_default();
                if !shell.is_empty() && !is_ours(shell) {
                    return Choice::Made { by: format!("`shell` in {}", path.display()) };
                }
            }
            // The word alone may be in a comment, or the name of something else.
            Err(_) if text.contains("\"shell\"") => found = Choice::Unclear { path },
            Err(_) => {}
        }
    }
    found
}

/// Files of the project, if we are in one.
fn project(place: &Place, names: &[&'static str]) -> Vec<PathBuf> {
    let is_one = place.scope != Scope::User;
    names.iter().filter(|_| is_one).map(|name| place.root.join(name)).collect()
}

fn text(path: &Path) -> Option<String> {
    read(path).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok())
}
