//! The plugin for OpenCode: a file that is ours as a whole.

use std::path::{Path, PathBuf};

use super::agents::{file, notes};
use super::command::named;
use super::json::Json;
use super::person::{behind_links, is_there, read};
use super::record::{Record, missing_folders, our_folders, remove_folders};
use super::{Change, InstallError, Mode, Place, Plan, shell};
use crate::agent::Agent;
use crate::coverage::{InPlace, coverage};

const PLUGIN: &str = include_str!("plugin.js");

/// By this line a file is known to be ours, whatever else is in it.
const MARK: &str = "// Written by `tenure install opencode`";

pub fn plan_install(place: &Place) -> Result<Plan, InstallError> {
    let path = behind_links(&file(Agent::OpenCode, place)?)?;
    let mut plan = Plan::default();
    let shell = shell::given(Agent::OpenCode, place, &mut plan)?;
    plan.notes.splice(0..0, notes(Agent::OpenCode, place.scope, shell.is_some()));
    let in_place = InPlace { hooks: true, shell: shell.is_some(), gate: place.unwatchable.is_none() };
    plan.coverage = coverage(Agent::OpenCode, in_place);
    let content = content(&place.program, shell.as_deref())?;
    let current = read(&path)?;
    if current.as_deref() != Some(content.as_bytes()) {
        if current.as_deref().is_some_and(|current| !is_ours(current)) {
            return Err(InstallError::Taken { path });
        }
        let record = Record::load(place, &path)?;
        let mut remembered = Record::new(&path, content.as_bytes(), None);
        remembered.folders = record.map_or(0, |record| record.folders).max(our_folders(place, &path));
        plan.first = remembered.keep(place, &path)?;
        plan.changes = missing_folders(&path);
        let content = content.into_bytes();
        plan.changes.push(Change::Write { path, content, mode: Mode::Plain, before: current });
    }
    if shell.is_some() {
        shell::add(&mut plan, place)?;
    }
    Ok(plan)
}

pub fn plan_uninstall(place: &Place) -> Result<Plan, InstallError> {
    let path = behind_links(&file(Agent::OpenCode, place)?)?;
    let mut plan = without(place, &path)?;
    shell::keep(&mut plan, place);
    Ok(plan)
}

/// What it takes to have the plugin out.
fn without(place: &Place, path: &Path) -> Result<Plan, InstallError> {
    let record = Record::load(place, path)?;
    let mut plan = Plan { last: Record::forget(place, path)?, ..Plan::default() };
    let Some(current) = read(path)?.filter(|current| is_ours(current)) else { return Ok(plan) };
    let is_untouched = record.as_ref().is_some_and(|record| record.is_untouched(&current));
    let is_untouched = is_untouched || is_as_written(&String::from_utf8_lossy(&current));
    let folders: Vec<_> = remove_folders(path, record.map_or(0, |record| record.folders)).collect();
    if is_untouched {
        plan.changes.push(Change::Remove { path: path.to_owned(), before: current });
    } else {
        let to = set_aside(path)?;
        plan.notes.push(format!("The plugin was changed by somebody, so it is kept as {}.", to.display()));
        plan.changes.push(Change::Rename { from: path.to_owned(), to });
    }
    plan.changes.extend(folders);
    Ok(plan)
}

/// Where a file of ours goes that somebody changed: nobody loads it there.
pub fn set_aside(path: &Path) -> Result<PathBuf, InstallError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".changed");
    let to = PathBuf::from(name);
    if is_there(&to) { Err(InstallError::Taken { path: to }) } else { Ok(to) }
}

pub fn is_ours(content: &[u8]) -> bool {
    content.starts_with(MARK.as_bytes())
}

/// What the plugin calls by this name, if it is a text.
pub fn constant(content: &str, name: &str) -> Option<PathBuf> {
    let begin = format!("const {name} = ");
    let value = content.lines().find_map(|line| line.strip_prefix(&begin))?;
    serde_json::from_str::<String>(value.trim_end_matches(';')).ok().map(PathBuf::from)
}

/// Whether nobody changed it, whichever program and shell it names.
pub fn is_as_written(text: &str) -> bool {
    let program = constant(text, "PROGRAM").unwrap_or_default();
    let shell = constant(text, "SHELL");
    let shell = shell.as_deref().and_then(Path::to_str);
    content(&program, shell).is_ok_and(|content| content == text)
}

fn content(program: &Path, shell: Option<&str>) -> Result<String, InstallError> {
    let program = Json::text(named(program)?).parsed().to_string();
    let shell = shell.map_or("null".to_owned(), |shell| Json::text(shell).parsed().to_string());
    let plugin = PLUGIN.replacen("\"/path/to/tenure-bash\"", &shell, 1);
    Ok(plugin.replacen("\"/path/to/tenure\"", &program, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_template_has_its_marker_and_one_placeholder_per_path() {
        assert!(is_ours(PLUGIN.as_bytes()));
        for place in ["\"/path/to/tenure\"", "\"/path/to/tenure-bash\""] {
            assert_eq!(PLUGIN.matches(place).count(), 1, "{place}");
        }
        assert_eq!(constant(PLUGIN, "PROGRAM").as_deref(), Some(Path::new("/path/to/tenure")));
        assert_eq!(constant(PLUGIN, "SHELL").as_deref(), Some(Path::new("/path/to/tenure-bash")));
        assert_eq!(constant(PLUGIN, "PATIENCE_MS"), None);
    }
}
