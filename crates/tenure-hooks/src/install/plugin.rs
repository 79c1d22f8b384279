//! The plugin for OpenCode: a file that is ours as a whole.

use std::path::{Path, PathBuf};

use tenure_host::coding_agent::CodingAgent;

use super::agent_settings::{install_notes, settings_file};
use super::hook_entries::program_path;
use super::install_record::{InstallRecord, count_own_folders, missing_folders, remove_folders};
use super::json::Json;
use super::user_folders::{entry_exists, read_file, resolve_links};
use super::{FileMode, InstallContext, InstallError, InstallPlan, PlannedChange, configured_shell};
use crate::interception_coverage::{InstalledComponents, interception_coverage};

const PLUGIN: &str = include_str!("plugin.js");

/// By this line a file is known to be ours, whatever else is in it.
const OWN_MARKER: &str = "// Written by `tenure install opencode`";

pub fn plan_install(place: &InstallContext) -> Result<InstallPlan, InstallError> {
    let path = resolve_links(&settings_file(CodingAgent::OpenCode, place)?)?;
    let mut plan = InstallPlan::default();
    let shell = configured_shell::shell_for_agent(CodingAgent::OpenCode, place, &mut plan)?;
    plan.notes.splice(0..0, install_notes(CodingAgent::OpenCode, place.scope, shell.is_some()));
    let in_place = InstalledComponents {
        hooks: true,
        shell: shell.is_some(),
        interception: place.interception_unavailable.is_none(),
    };
    plan.coverage = interception_coverage(CodingAgent::OpenCode, in_place);
    let content = content(&place.program, shell.as_deref())?;
    let current = read_file(&path)?;
    if current.as_deref() != Some(content.as_bytes()) {
        if current.as_deref().is_some_and(|current| !is_own_plugin(current)) {
            return Err(InstallError::Taken { path });
        }
        let record = InstallRecord::load(place, &path)?;
        let mut remembered = InstallRecord::new(&path, content.as_bytes(), None);
        remembered.folders = record.map_or(0, |record| record.folders).max(count_own_folders(place, &path));
        plan.record_changes = remembered.plan_save(place, &path)?;
        plan.changes = missing_folders(&path);
        let content = content.into_bytes();
        plan.changes.push(PlannedChange::Write { path, content, mode: FileMode::Plain, before: current });
    }
    if shell.is_some() {
        configured_shell::plan_link(&mut plan, place)?;
    }
    Ok(plan)
}

pub fn plan_uninstall(place: &InstallContext) -> Result<InstallPlan, InstallError> {
    let path = resolve_links(&settings_file(CodingAgent::OpenCode, place)?)?;
    let mut plan = plan_removal(place, &path)?;
    configured_shell::explain_kept_shell(&mut plan, place);
    Ok(plan)
}

/// What it takes to have the plugin out.
fn plan_removal(place: &InstallContext, path: &Path) -> Result<InstallPlan, InstallError> {
    let record = InstallRecord::load(place, path)?;
    let mut plan =
        InstallPlan { cleanup_changes: InstallRecord::plan_removal(place, path)?, ..InstallPlan::default() };
    let Some(current) = read_file(path)?.filter(|current| is_own_plugin(current)) else { return Ok(plan) };
    let is_untouched = record.as_ref().is_some_and(|record| record.is_untouched(&current));
    let is_untouched = is_untouched || is_unmodified(&String::from_utf8_lossy(&current));
    let folders: Vec<_> = remove_folders(path, record.map_or(0, |record| record.folders)).collect();
    if is_untouched {
        plan.changes.push(PlannedChange::Remove { path: path.to_owned(), before: current });
    } else {
        let to = changed_copy_path(path)?;
        plan.notes.push(format!("The plugin was changed by somebody, so it is kept as {}.", to.display()));
        plan.changes.push(PlannedChange::Rename { from: path.to_owned(), to });
    }
    plan.changes.extend(folders);
    Ok(plan)
}

/// Where a file of ours goes that somebody changed: nobody loads it there.
pub fn changed_copy_path(path: &Path) -> Result<PathBuf, InstallError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".changed");
    let to = PathBuf::from(name);
    if entry_exists(&to) { Err(InstallError::Taken { path: to }) } else { Ok(to) }
}

pub fn is_own_plugin(content: &[u8]) -> bool {
    content.starts_with(OWN_MARKER.as_bytes())
}

/// What the plugin calls by this name, if it is a text.
pub fn parse_constant(content: &str, name: &str) -> Option<PathBuf> {
    let begin = format!("const {name} = ");
    let value = content.lines().find_map(|line| line.strip_prefix(&begin))?;
    serde_json::from_str::<String>(value.trim_end_matches(';')).ok().map(PathBuf::from)
}

/// Whether nobody changed it, whichever program and shell it names.
pub fn is_unmodified(text: &str) -> bool {
    let program = parse_constant(text, "PROGRAM").unwrap_or_default();
    let shell = parse_constant(text, "SHELL");
    let shell = shell.as_deref().and_then(Path::to_str);
    content(&program, shell).is_ok_and(|content| content == text)
}

fn content(program: &Path, shell: Option<&str>) -> Result<String, InstallError> {
    let program = Json::string(program_path(program)?).to_serde_value().to_string();
    let shell = shell.map_or("null".to_owned(), |shell| Json::string(shell).to_serde_value().to_string());
    let plugin = PLUGIN.replacen("\"/path/to/tenure-bash\"", &shell, 1);
    Ok(plugin.replacen("\"/path/to/tenure\"", &program, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_template_has_its_marker_and_one_placeholder_per_path() {
        assert!(is_own_plugin(PLUGIN.as_bytes()));
        for place in ["\"/path/to/tenure\"", "\"/path/to/tenure-bash\""] {
            assert_eq!(PLUGIN.matches(place).count(), 1, "{place}");
        }
        assert_eq!(parse_constant(PLUGIN, "PROGRAM").as_deref(), Some(Path::new("/path/to/tenure")));
        assert_eq!(parse_constant(PLUGIN, "SHELL").as_deref(), Some(Path::new("/path/to/tenure-bash")));
        assert_eq!(parse_constant(PLUGIN, "PATIENCE_MS"), None);
    }
}
