//! The shell that agents are given: this program under another name, by which it runs bash behind the gate.
//!
//! It is never taken away. Settings that nobody here knows of may name it: those of a clone or another working tree, where they
//! are committed. Claude Code takes a shell that is gone for none, and runs the plain one without a word.

use std::path::{Path, PathBuf};

use super::agents::takes_shell;
use super::chosen::{Choice, choice};
use super::person::{is_there, leads_to};
use super::record::missing_folders;
use super::{Change, InstallError, Place, Plan};
use crate::agent::Agent;
use crate::coverage::guarded as guard_command;

/// Agents take a shell by its name: it must contain "bash".
const NAME: &str = "tenure-bash";

/// Where it is: with what Tenure keeps for itself.
pub fn path(place: &Place) -> PathBuf {
    place.backups.join("bin").join(NAME)
}

fn named(place: &Place) -> Result<String, InstallError> {
    let path = path(place);
    let text = path.to_str().filter(|text| path.is_absolute() && !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| InstallError::State { path: place.backups.clone() })
}

/// Whether this names a shell of ours, here or somewhere else.
pub fn is_ours(shell: impl AsRef<Path>) -> bool {
    shell.as_ref().file_name().is_some_and(|name| name == NAME)
}

/// The shell that this agent gets, if it gets one; what there is to know about it goes into the plan.
pub fn given(agent: Agent, place: &Place, plan: &mut Plan) -> Result<Option<String>, InstallError> {
    if let Some(why) = &place.unwatchable {
        plan.notes.push(format!(
            "This system does not let calls be watched ({why}), so its commands run in their own shell; only the audit sees \
             what they write. Allow seccomp in the container, and install again."
        ));
        return Ok(None);
    }
    if !takes_shell(agent) {
        return Ok(None);
    }
    match choice(agent, place) {
        Choice::Made { by } => {
            plan.notes.push(format!(
                "You have chosen a shell yourself ({by}). It stays, so what commands write is not asked for. Take it out and \
                 install again, or start the agent with `{}`.",
                guard_command(agent)
            ));
            return Ok(None);
        }
        Choice::Unclear { path } => plan.notes.push(format!(
            "{} cannot be read: it has comments, or is no JSON. If `shell` in it names another one, what commands write is not \
             asked for.",
            path.display()
        )),
        Choice::Free => {}
    }
    if let Some(theirs) = place.login_shell.as_ref().filter(|shell| !shell.ends_with("bash")) {
        plan.notes.push(format!(
            "Your own shell is {}; the agent's commands run in bash from now on, without what that one sets up.",
            theirs.display()
        ));
    }
    named(place).map(Some)
}

/// Adds what it takes to have it. It comes first: nobody shall be told of a shell that is not there yet.
pub fn add(plan: &mut Plan, place: &Place) -> Result<(), InstallError> {
    let path = path(place);
    let before = leads_to(&path);
    if before.as_ref() == Some(&place.program) {
        return Ok(());
    }
    if before.is_none() && is_there(&path) {
        return Err(InstallError::Taken { path });
    }
    plan.first.extend(missing_folders(&path));
    plan.changes.insert(0, Change::Link { path, target: place.program.clone(), before });
    Ok(())
}

/// Says that it stays, where hooks that may have named it go.
pub fn keep(plan: &mut Plan, place: &Place) {
    let path = path(place);
    if !plan.changes.is_empty() && leads_to(&path).is_some() {
        plan.notes.push(format!(
            "{} stays: settings of another clone or working tree may name it. It does nothing by itself.",
            path.display()
        ));
    }
}
