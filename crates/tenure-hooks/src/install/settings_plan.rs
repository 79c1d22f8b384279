//! What is done to the settings file of an agent.

use std::path::Path;

use tenure_host::coding_agent::CodingAgent;

use super::agent_settings::{desired_settings, install_notes, settings_file, supports_shell_setting};
use super::hook_entries::{
    DesiredSettings, OwnCommands, SettingsEditError, add_entries, check_event_shapes, hook_command,
    is_complete, is_empty, remove_entries,
};
use super::install_record::{InstallRecord, count_own_folders, missing_folders, remove_folders};
use super::json::first_comment_line;
use super::user_folders::{hooks_disabling_setting, read_file, resolve_links};
use super::{FileMode, InstallContext, InstallError, InstallPlan, PlannedChange, configured_shell};
use crate::interception_coverage::{InstalledComponents, interception_coverage};

pub fn plan_install(agent: CodingAgent, place: &InstallContext) -> Result<InstallPlan, InstallError> {
    let path = resolve_links(&settings_file(agent, place)?)?;
    let command = hook_command(&place.program, agent.as_str())?;
    let mut plan = InstallPlan::default();
    let shell = configured_shell::shell_for_agent(agent, place, &mut plan)?;
    let gets_shell = shell.is_some();
    plan.notes.splice(0..0, install_notes(agent, place.scope, gets_shell));
    let desired = desired_settings(agent, &command, shell);
    let record = InstallRecord::load(place, &path)?;
    let current = read_text(&path)?;
    let switch = current.as_ref().and_then(|text| hooks_disabling_setting(agent, text));
    if let Some(switch) = switch {
        let path = path.display();
        plan.notes.push(format!(
            "Hooks are turned off in {path} by `{switch}`: until that is changed, no edit is guarded."
        ));
    }
    let in_place = InstalledComponents {
        hooks: switch.is_none(),
        shell: gets_shell,
        interception: place.interception_unavailable.is_none(),
    };
    plan.coverage = interception_coverage(agent, in_place);
    let known: Vec<_> =
        [command.clone()].into_iter().chain(record.as_ref().map(|it| it.command.clone())).collect();
    let ours = OwnCommands { known: &known, hook_name: agent.as_str() };
    if !current.as_ref().is_some_and(|text| is_complete(text, &desired, &ours)) {
        write(&mut plan, place, &path, current, record, &desired, &ours)?;
    }
    if gets_shell {
        configured_shell::plan_link(&mut plan, place)?;
    }
    Ok(plan)
}

/// Adds what it takes to have in the file what is wanted.
fn write(
    plan: &mut InstallPlan,
    place: &InstallContext,
    path: &Path,
    current: Option<String>,
    record: Option<InstallRecord>,
    desired: &DesiredSettings,
    ours: &OwnCommands<'_>,
) -> Result<(), InstallError> {
    let original = original_text(path, current.as_deref(), record.as_ref(), desired, ours)?;
    let base = original.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or("{}\n");
    let to_install_error = |unfit| settings_error(path, unfit);
    check_event_shapes(base, desired).map_err(to_install_error)?;
    let (content, made) = add_entries(base, desired).map_err(to_install_error)?;

    let kept = original.map(String::into_bytes);
    let mut remembered = InstallRecord::new(path, content.as_bytes(), kept);
    remembered.folders = record.map_or(0, |record| record.folders).max(count_own_folders(place, path));
    remembered.made = made;
    remembered.command = ours.known.first().cloned().unwrap_or_default();
    plan.record_changes = remembered.plan_save(place, path)?;
    plan.changes = missing_folders(path);
    let path = path.to_owned();
    let before = current.map(String::into_bytes);
    plan.changes.push(PlannedChange::Write {
        path,
        content: content.into_bytes(),
        mode: FileMode::Plain,
        before,
    });
    Ok(())
}

pub fn plan_uninstall(agent: CodingAgent, place: &InstallContext) -> Result<InstallPlan, InstallError> {
    let path = resolve_links(&settings_file(agent, place)?)?;
    let mut plan = plan_removal(agent, place, &path)?;
    if supports_shell_setting(agent) {
        configured_shell::explain_kept_shell(&mut plan, place);
    }
    Ok(plan)
}

/// What it takes to have our hooks out of the file.
fn plan_removal(
    agent: CodingAgent,
    place: &InstallContext,
    path: &Path,
) -> Result<InstallPlan, InstallError> {
    let record = InstallRecord::load(place, path)?;
    let current = read_text(path)?;
    let mut plan =
        InstallPlan { cleanup_changes: InstallRecord::plan_removal(place, path)?, ..InstallPlan::default() };
    let Some(current) = current else { return Ok(plan) };
    let command = hook_command(&place.program, agent.as_str())?;
    let desired = desired_settings(agent, &command, None);
    let known: Vec<_> = [command].into_iter().chain(record.as_ref().map(|it| it.command.clone())).collect();
    let ours = OwnCommands { known: &known, hook_name: agent.as_str() };
    let original = original_text(path, Some(&current), record.as_ref(), &desired, &ours)?;
    let before = current.clone().into_bytes();
    let path = path.to_owned();
    match original {
        Some(original) if original == current => {}
        Some(original) => {
            let content = original.into_bytes();
            plan.changes.push(PlannedChange::Write {
                path,
                content,
                mode: FileMode::Plain,
                before: Some(before),
            });
        }
        None => {
            let folders = record.map_or(0, |record| record.folders);
            let removed = remove_folders(&path, folders).collect::<Vec<_>>();
            plan.changes.push(PlannedChange::Remove { path, before });
            plan.changes.extend(removed);
        }
    }
    Ok(plan)
}

/// The file as it would be without us: byte by byte if nobody changed it since, else without our entries.
fn original_text(
    path: &Path,
    current: Option<&str>,
    record: Option<&InstallRecord>,
    desired: &DesiredSettings,
    ours: &OwnCommands<'_>,
) -> Result<Option<String>, InstallError> {
    let Some(current) = current else { return Ok(None) };
    match record {
        Some(record) if record.is_untouched(current.as_bytes()) => {
            record.original.clone().map(|bytes| text(path, bytes)).transpose()
        }
        // Nothing was there before anybody, so nothing is kept for us.
        _ if current.trim().is_empty() => Ok(Some(current.to_owned())),
        record => {
            let made = record.map(|record| record.made.as_slice());
            let stripped =
                remove_entries(current, desired, ours, made).map_err(|unfit| settings_error(path, unfit))?;
            let is_only_ours = record.is_some_and(|record| !record.had_original) && is_empty(&stripped);
            Ok((!is_only_ours).then_some(stripped))
        }
    }
}

fn read_text(path: &Path) -> Result<Option<String>, InstallError> {
    let text = read_file(path)?.map(|bytes| text(path, bytes)).transpose()?;
    match text.as_deref().and_then(first_comment_line) {
        Some(line) => Err(InstallError::Comments { path: path.to_owned(), line }),
        None => Ok(text),
    }
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, InstallError> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = good.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        InstallError::NotJson { path: path.to_owned(), line, column }
    })
}

fn settings_error(path: &Path, unfit: SettingsEditError) -> InstallError {
    let path = path.to_owned();
    match unfit {
        SettingsEditError::NotJson(place) => {
            InstallError::NotJson { path, line: place.line, column: place.column }
        }
        SettingsEditError::UnexpectedShape(what) => InstallError::UnexpectedShape { path, what },
    }
}
