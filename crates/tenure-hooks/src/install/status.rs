//! What is installed for an agent, read from its settings.

use std::path::PathBuf;

use serde_json::Value;
use tenure_host::coding_agent::CodingAgent;

use super::agent_settings::{desired_settings, settings_file};
use super::hook_entries::{
    DesiredSettings, OwnCommands, entry_commands, hook_command, is_complete, is_own_command, program_of,
};
use super::install_record::InstallRecord;
use super::json::first_comment_line;
use super::user_folders::{hooks_enablement_settings, read_file, resolve_links};
use super::{InstallContext, InstallError, plugin};

/// What is in place for an agent in one scope.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstallStatus {
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
    pub unreadable: Option<UnreadableSettings>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadableSettings {
    /// They have comments, which some agents read all the same.
    Comments {
        /// Where the first of them is.
        line: usize,
    },
    NotJson {
        line: usize,
    },
}

impl InstallStatus {
    /// Our command for this event, as the agent would run it.
    pub fn command(&self, event: &str) -> Option<&str> {
        self.hooks.iter().find(|(other, _)| other == event).map(|(_, command)| command.as_str())
    }
}

/// What is in place for an agent. Reads, and changes nothing.
pub fn install_status(agent: CodingAgent, place: &InstallContext) -> Result<InstallStatus, InstallError> {
    let path = resolve_links(&settings_file(agent, place)?)?;
    let Some(bytes) = read_file(&path)? else {
        return Ok(InstallStatus { path, ..InstallStatus::default() });
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut found = match agent {
        CodingAgent::OpenCode => in_plugin(&text),
        _ => in_settings(agent, &text, InstallRecord::load(place, &path)?.as_ref()),
    };
    found.path = path;
    Ok(found)
}

fn in_plugin(text: &str) -> InstallStatus {
    if !plugin::is_own_plugin(text.as_bytes()) {
        return InstallStatus::default();
    }
    // A plugin of ours without a program is ours all the same, and not complete.
    let program = plugin::parse_constant(text, "PROGRAM").unwrap_or_default();
    InstallStatus {
        programs: vec![program],
        is_complete: plugin::is_unmodified(text),
        shell: plugin::parse_constant(text, "SHELL"),
        ..InstallStatus::default()
    }
}

fn in_settings(agent: CodingAgent, text: &str, record: Option<&InstallRecord>) -> InstallStatus {
    let hook_name = agent.as_str();
    let document: Value = match serde_json::from_str(text) {
        Ok(document) => document,
        // Where our command does not stand, nothing of ours does.
        Err(_) if !text.contains(&format!(" hook {hook_name}")) => return InstallStatus::default(),
        Err(error) => {
            let not_json = UnreadableSettings::NotJson { line: error.line() };
            let unreadable =
                first_comment_line(text).map_or(not_json, |line| UnreadableSettings::Comments { line });
            return InstallStatus { unreadable: Some(unreadable), ..InstallStatus::default() };
        }
    };
    let known: Vec<String> = record.map(|record| record.command.clone()).into_iter().collect();
    let mut found =
        InstallStatus { switches: hooks_enablement_settings(agent, text), ..InstallStatus::default() };
    for (event, entries) in document.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        let entries = entries.as_array().into_iter().flatten();
        for command in
            entries.flat_map(entry_commands).filter(|command| is_own_command(command, &known, hook_name))
        {
            found.hooks.push((event.clone(), command.to_owned()));
            found.programs.extend(program_of(command, hook_name));
        }
    }
    found.programs.sort();
    found.programs.dedup();
    // Another program than ours is another finding, and so are two.
    if let [program] = &*found.programs
        && let Ok(command) = hook_command(program, hook_name)
    {
        let desired = DesiredSettings { variable: None, ..desired_settings(agent, &command, None) };
        found.is_complete =
            is_complete(text, &desired, &OwnCommands { known: &[known, vec![command]].concat(), hook_name });
    }
    if agent == CodingAgent::Claude {
        let shell = document.pointer("/env/CLAUDE_CODE_SHELL").and_then(Value::as_str);
        found.shell = shell.map(PathBuf::from);
    }
    found
}
