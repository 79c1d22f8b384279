//! What is in place for an agent: read again from its settings, by whoever wants to know whether it works.

use std::path::PathBuf;

use serde_json::Value;

use super::agents::{file, wanted};
use super::command::{hook_command, is_ours, program_of};
use super::json::comment;
use super::person::{behind_links, read, switches};
use super::record::Record;
use super::settings::{Ours, Wanted, commands, is_complete};
use super::{InstallError, Place, plugin};
use crate::agent::Agent;

/// What is in place for an agent in one scope.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Installed {
    /// The file that the agent reads. It may not be there.
    pub path: PathBuf,
    /// Our commands as they stand there, each with its event. A plugin has none.
    pub hooks: Vec<(String, String)>,
    /// The programs that they run, each once. None if nothing of ours is there.
    pub programs: Vec<PathBuf>,
    /// Whether every event is there that installing with the same program would put there. The shell is another matter.
    pub is_complete: bool,
    /// The switches for all hooks that are set there, and whether each turns them off.
    pub switches: Vec<(&'static str, bool)>,
    /// The shell for the agent's commands that is named there.
    pub shell: Option<PathBuf>,
    /// Why it cannot be read, if hooks of ours seem to be in it.
    pub unreadable: Option<Unreadable>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// They have comments, which some agents read all the same.
    Comments {
        /// Where the first of them is.
        line: usize,
    },
    NotJson {
        line: usize,
    },
}

impl Installed {
    /// Our command for this event, as the agent would run it.
    pub fn command(&self, event: &str) -> Option<&str> {
        self.hooks.iter().find(|(other, _)| other == event).map(|(_, command)| command.as_str())
    }
}

/// What is in place for an agent. Reads, and changes nothing.
pub fn installed(agent: Agent, place: &Place) -> Result<Installed, InstallError> {
    let path = behind_links(&file(agent, place)?)?;
    let Some(bytes) = read(&path)? else { return Ok(Installed { path, ..Installed::default() }) };
    let text = String::from_utf8_lossy(&bytes);
    let mut found = match agent {
        Agent::OpenCode => in_plugin(&text),
        _ => in_settings(agent, &text, Record::load(place, &path)?.as_ref()),
    };
    found.path = path;
    Ok(found)
}

fn in_plugin(text: &str) -> Installed {
    if !plugin::is_ours(text.as_bytes()) {
        return Installed::default();
    }
    // A plugin of ours without a program is ours all the same, and not complete.
    let program = plugin::constant(text, "PROGRAM").unwrap_or_default();
    Installed {
        programs: vec![program],
        is_complete: plugin::is_as_written(text),
        shell: plugin::constant(text, "SHELL"),
        ..Installed::default()
    }
}

fn in_settings(agent: Agent, text: &str, record: Option<&Record>) -> Installed {
    let who = agent.as_str();
    let document: Value = match serde_json::from_str(text) {
        Ok(document) => document,
        // Where our command does not stand, nothing of ours does.
        Err(_) if !text.contains(&format!(" hook {who}")) => return Installed::default(),
        Err(error) => {
            let not_json = Unreadable::NotJson { line: error.line() };
            let unreadable = comment(text).map_or(not_json, |line| Unreadable::Comments { line });
            return Installed { unreadable: Some(unreadable), ..Installed::default() };
        }
    };
    let known: Vec<String> = record.map(|record| record.command.clone()).into_iter().collect();
    let mut found = Installed { switches: switches(agent, text), ..Installed::default() };
    for (event, entries) in document.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        let entries = entries.as_array().into_iter().flatten();
        for command in entries.flat_map(commands).filter(|command| is_ours(command, &known, who)) {
            found.hooks.push((event.clone(), command.to_owned()));
            found.programs.extend(program_of(command, who));
        }
    }
    found.programs.sort();
    found.programs.dedup();
    // Another program than ours is another finding, and so are two.
    if let [program] = &*found.programs
        && let Ok(command) = hook_command(program, who)
    {
        let wanted = Wanted { variable: None, ..wanted(agent, &command, None) };
        found.is_complete =
            is_complete(text, &wanted, &Ours { known: &[known, vec![command]].concat(), who });
    }
    if agent == Agent::Claude {
        let shell = document.pointer("/env/CLAUDE_CODE_SHELL").and_then(Value::as_str);
        found.shell = shell.map(PathBuf::from);
    }
    found
}
