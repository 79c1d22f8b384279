//! What is done to the settings file of an agent.

use std::path::Path;

use super::agents::{file, notes, takes_shell, wanted};
use super::command::hook_command;
use super::json::comment;
use super::person::{behind_links, read, switched_off};
use super::record::{Record, missing_folders, our_folders, remove_folders};
use super::settings::{Ours, Unfit, Wanted, add, can_take, is_complete, is_empty, strip};
use super::{Change, InstallError, Mode, Place, Plan, shell};
use crate::agent::Agent;
use crate::coverage::{InPlace, coverage};

pub fn plan_install(agent: Agent, place: &Place) -> Result<Plan, InstallError> {
    let path = behind_links(&file(agent, place)?)?;
    let command = hook_command(&place.program, agent.as_str())?;
    let mut plan = Plan::default();
    let shell = shell::given(agent, place, &mut plan)?;
    let gets_shell = shell.is_some();
    plan.notes.splice(0..0, notes(agent, place.scope, gets_shell));
    let wanted = wanted(agent, &command, shell);
    let record = Record::load(place, &path)?;
    let current = read_text(&path)?;
    let switch = current.as_ref().and_then(|text| switched_off(agent, text));
    if let Some(switch) = switch {
        let path = path.display();
        plan.notes.push(format!(
            "Hooks are turned off in {path} by `{switch}`: until that is changed, no edit is guarded."
        ));
    }
    let in_place = InPlace { hooks: switch.is_none(), shell: gets_shell, gate: place.unwatchable.is_none() };
    plan.coverage = coverage(agent, in_place);
    let known: Vec<_> =
        [command.clone()].into_iter().chain(record.as_ref().map(|it| it.command.clone())).collect();
    let ours = Ours { known: &known, who: agent.as_str() };
    if !current.as_ref().is_some_and(|text| is_complete(text, &wanted, &ours)) {
        write(&mut plan, place, &path, current, record, &wanted, &ours)?;
    }
    if gets_shell {
        shell::add(&mut plan, place)?;
    }
    Ok(plan)
}

/// Adds what it takes to have in the file what is wanted.
fn write(
    plan: &mut Plan,
    place: &Place,
    path: &Path,
    current: Option<String>,
    record: Option<Record>,
    wanted: &Wanted,
    ours: &Ours<'_>,
) -> Result<(), InstallError> {
    let original = before_us(path, current.as_deref(), record.as_ref(), wanted, ours)?;
    let base = original.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or("{}\n");
    let unfit = |unfit| at(path, unfit);
    can_take(base, wanted).map_err(unfit)?;
    let (content, made) = add(base, wanted).map_err(unfit)?;

    let kept = original.map(String::into_bytes);
    let mut remembered = Record::new(path, content.as_bytes(), kept);
    remembered.folders = record.map_or(0, |record| record.folders).max(our_folders(place, path));
    remembered.made = made;
    remembered.command = ours.known.first().cloned().unwrap_or_default();
    plan.first = remembered.keep(place, path)?;
    plan.changes = missing_folders(path);
    let path = path.to_owned();
    let before = current.map(String::into_bytes);
    plan.changes.push(Change::Write { path, content: content.into_bytes(), mode: Mode::Plain, before });
    Ok(())
}

pub fn plan_uninstall(agent: Agent, place: &Place) -> Result<Plan, InstallError> {
    let path = behind_links(&file(agent, place)?)?;
    let mut plan = without(agent, place, &path)?;
    if takes_shell(agent) {
        shell::keep(&mut plan, place);
    }
    Ok(plan)
}

/// What it takes to have our hooks out of the file.
fn without(agent: Agent, place: &Place, path: &Path) -> Result<Plan, InstallError> {
    let record = Record::load(place, path)?;
    let current = read_text(path)?;
    let mut plan = Plan { last: Record::forget(place, path)?, ..Plan::default() };
    let Some(current) = current else { return Ok(plan) };
    let command = hook_command(&place.program, agent.as_str())?;
    let wanted = wanted(agent, &command, None);
    let known: Vec<_> = [command].into_iter().chain(record.as_ref().map(|it| it.command.clone())).collect();
    let ours = Ours { known: &known, who: agent.as_str() };
    let original = before_us(path, Some(&current), record.as_ref(), &wanted, &ours)?;
    let before = current.clone().into_bytes();
    let path = path.to_owned();
    match original {
        Some(original) if original == current => {}
        Some(original) => {
            let content = original.into_bytes();
            plan.changes.push(Change::Write { path, content, mode: Mode::Plain, before: Some(before) });
        }
        None => {
            let folders = record.map_or(0, |record| record.folders);
            let removed = remove_folders(&path, folders).collect::<Vec<_>>();
            plan.changes.push(Change::Remove { path, before });
            plan.changes.extend(removed);
        }
    }
    Ok(plan)
}

/// The file as it would be without us: byte by byte if nobody changed it since, else without our entries.
fn before_us(
    path: &Path,
    current: Option<&str>,
    record: Option<&Record>,
    wanted: &Wanted,
    ours: &Ours<'_>,
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
            let stripped = strip(current, wanted, ours, made).map_err(|unfit| at(path, unfit))?;
            let is_only_ours = record.is_some_and(|record| !record.had_original) && is_empty(&stripped);
            Ok((!is_only_ours).then_some(stripped))
        }
    }
}

fn read_text(path: &Path) -> Result<Option<String>, InstallError> {
    let text = read(path)?.map(|bytes| text(path, bytes)).transpose()?;
    match text.as_deref().and_then(comment) {
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

fn at(path: &Path, unfit: Unfit) -> InstallError {
    let path = path.to_owned();
    match unfit {
        Unfit::NotJson(place) => InstallError::NotJson { path, line: place.line, column: place.column },
        Unfit::Strange(what) => InstallError::Strange { path, what },
    }
}
