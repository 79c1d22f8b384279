//! The shell that agents are given: this program under another name, by which it runs bash behind the gate.
//!
//! It is never taken away. Settings that nobody here knows of may name it: those of a clone or another working tree, where they
//! are committed. Claude Code takes a shell that is gone for none, and runs the plain one without a word.

use std::path::{Path, PathBuf};

use super::agent_settings::supports_shell_setting;
use super::configured_shell::{ConfiguredShell, configured_shell};
use super::install_record::missing_folders;
use super::user_folders::{entry_exists, link_target};
use super::{InstallContext, InstallError, InstallPlan, PlannedChange};
use crate::coding_agent::CodingAgent;
use crate::interception_coverage::guard_command;

/// Agents take a shell by its name: it must contain "bash".
const NAME: &str = "tenure-bash";

/// Where it is: with what Tenure keeps for itself.
pub fn shell_path(place: &InstallContext) -> PathBuf {
    place.backups.join("bin").join(NAME)
}

fn named(place: &InstallContext) -> Result<String, InstallError> {
    let path = shell_path(place);
    let text = path.to_str().filter(|text| path.is_absolute() && !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| InstallError::State { path: place.backups.clone() })
}

/// Whether this names a shell of ours, here or somewhere else.
pub fn is_own_shell(shell: impl AsRef<Path>) -> bool {
    shell.as_ref().file_name().is_some_and(|name| name == NAME)
}

/// The shell that this agent gets, if it gets one; what there is to know about it goes into the plan.
pub fn shell_for_agent(
    agent: CodingAgent,
    place: &InstallContext,
    plan: &mut InstallPlan,
) -> Result<Option<String>, InstallError> {
    if let Some(why) = &place.interception_unavailable {
        plan.notes.push(format!(
            "This system does not let calls be watched ({why}), so its commands run in their own shell; only the audit sees \
             what they write. Allow seccomp in the container, and install again."
        ));
        return Ok(None);
    }
    if !supports_shell_setting(agent) {
        return Ok(None);
    }
    match configured_shell(agent, place) {
        ConfiguredShell::Set { by } => {
            plan.notes.push(format!(
                "You have chosen a shell yourself ({by}). It stays, so what commands write is not asked for. Take it out and \
                 install again, or start the agent with `{}`.",
                guard_command(agent)
            ));
            return Ok(None);
        }
        ConfiguredShell::Unclear { path } => plan.notes.push(format!(
            "{} cannot be read: it has comments, or is no JSON. If `shell` in it names another one, what commands write is not \
             asked for.",
            path.display()
        )),
        ConfiguredShell::Unset => {}
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
pub fn plan_link(plan: &mut InstallPlan, place: &InstallContext) -> Result<(), InstallError> {
    let path = shell_path(place);
    let before = link_target(&path);
    if before.as_ref() == Some(&place.program) {
        return Ok(());
    }
    if before.is_none() && entry_exists(&path) {
        return Err(InstallError::Taken { path });
    }
    plan.record_changes.extend(missing_folders(&path));
    plan.changes.insert(0, PlannedChange::Link { path, target: place.program.clone(), before });
    Ok(())
}

/// Says that it stays, where hooks that may have named it go.
pub fn explain_kept_shell(plan: &mut InstallPlan, place: &InstallContext) {
    let path = shell_path(place);
    if !plan.changes.is_empty() && link_target(&path).is_some() {
        plan.notes.push(format!(
            "{} stays: settings of another clone or working tree may name it. It does nothing by itself.",
            path.display()
        ));
    }
}
