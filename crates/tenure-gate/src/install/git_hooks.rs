//! Hooks in git: three small scripts, each of which calls first whatever was there before it.

use std::path::{Path, PathBuf};

use super::hook_command::shell_quote;
use super::install_record::{InstallRecord, count_own_folders, missing_folders, remove_folders};
use super::plugin::changed_copy_path;
use super::user_folders::{entry_exists, read_file};
use super::{FileMode, InstallContext, InstallError, InstallPlan, PlannedChange};
use crate::git::{HooksFolder, hooks_folder};

mod script;
mod status;

use script::{GitHookKind, is_own_script, render_script};
pub use status::{GitHook, GitHookStatus, git_hook_status};

pub fn plan_install(place: &InstallContext) -> Result<InstallPlan, InstallError> {
    let folder = folder(place)?;
    let program = shell_quote(&place.program)?;
    let mut plan = InstallPlan { notes: notes(&folder), ..InstallPlan::default() };
    for hook in GitHookKind::ALL {
        let path = folder.path.join(hook.name());
        let earlier = earlier_hook_path(&path);
        let current = read_if_any(&path)?;
        let mut before = current.clone();
        if let Some(theirs) = current.as_ref().filter(|current| !is_own_script(current)) {
            if let Some(stale) = read_if_any(&earlier)? {
                // Whoever owns this folder wrote the same hook again. What was kept is then a second copy.
                if stale != *theirs {
                    return Err(InstallError::Taken { path: earlier });
                }
                plan.changes.push(PlannedChange::Remove { path: earlier.clone(), before: stale });
            }
            plan.changes.push(PlannedChange::Rename { from: path.clone(), to: earlier.clone() });
            before = None;
        }
        let theirs = match &current {
            Some(current) if !is_own_script(current) => Some(current.clone()),
            _ => read_if_any(&earlier)?,
        };
        let content = render_script(hook, &program, theirs.as_deref()).into_bytes();
        if current.as_ref() == Some(&content) {
            continue;
        }
        let record = InstallRecord::load(place, &path)?;
        let mut remembered = InstallRecord::new(&path, &content, None);
        remembered.folders = record.map_or(0, |record| record.folders).max(count_own_folders(place, &path));
        plan.record_changes.extend(remembered.plan_save(place, &path)?);
        if plan.changes.is_empty() {
            plan.changes.extend(missing_folders(&path));
        }
        plan.changes.push(PlannedChange::Write { path, content, mode: FileMode::Program, before });
    }
    Ok(plan)
}

pub fn plan_uninstall(place: &InstallContext) -> Result<InstallPlan, InstallError> {
    let folder = folder(place)?;
    let program = shell_quote(&place.program)?;
    let mut plan = InstallPlan::default();
    let mut folders = 0;
    for hook in GitHookKind::ALL {
        let path = folder.path.join(hook.name());
        let earlier = earlier_hook_path(&path);
        let record = InstallRecord::load(place, &path)?;
        folders = folders.max(record.as_ref().map_or(0, |record| record.folders));
        plan.cleanup_changes.extend(InstallRecord::plan_removal(place, &path)?);
        let theirs = read_if_any(&earlier)?;
        let current = read_if_any(&path)?;
        if let Some(current) = current {
            if !is_own_script(&current) {
                // Somebody put another one in our place. It stays; what was kept goes only if it is the same.
                match theirs {
                    Some(theirs) if theirs == current => {
                        plan.changes.push(PlannedChange::Remove { path: earlier, before: theirs });
                    }
                    Some(_) => plan.notes.push(format!(
                        "{} was replaced by somebody; what was there before Tenure is still in {}.",
                        path.display(),
                        earlier.display()
                    )),
                    None => {}
                }
                continue;
            }
            let is_untouched = record.is_some_and(|record| record.is_untouched(&current))
                || current == render_script(hook, &program, theirs.as_deref()).into_bytes();
            if is_untouched {
                plan.changes.push(PlannedChange::Remove { path: path.clone(), before: current });
            } else {
                let to = changed_copy_path(&path)?;
                plan.notes.push(format!(
                    "{} was changed by somebody; it is kept as {}.",
                    path.display(),
                    to.display()
                ));
                plan.changes.push(PlannedChange::Rename { from: path.clone(), to });
            }
        }
        if entry_exists(&earlier) {
            plan.changes.push(PlannedChange::Rename { from: earlier, to: path });
        }
    }
    let any = folder.path.join(GitHookKind::PreCommit.name());
    plan.changes.extend(remove_folders(&any, folders));
    Ok(plan)
}

/// Where git looks for hooks, if hooks can be there.
fn folder(place: &InstallContext) -> Result<HooksFolder, InstallError> {
    let folder = hooks_folder(&place.root)?;
    if entry_exists(&folder.path) && !folder.path.is_dir() {
        return Err(InstallError::NoHooksFolder { path: folder.path });
    }
    Ok(folder)
}

/// The name of the hook that was there before ours.
fn earlier_hook_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(script::EARLIER_SUFFIX);
    PathBuf::from(name)
}

/// A link that leads nowhere is a hook that git does not run: nothing is in it, but it has the name.
fn read_if_any(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    match read_file(path)? {
        None if entry_exists(path) => Ok(Some(Vec::new())),
        content => Ok(content),
    }
}

fn notes(folder: &HooksFolder) -> Vec<String> {
    let mut notes = vec![
        "git: a commit gives back the leases of its files, and warns before it takes along what another agent is at. \
         Hooks that were there are called first, and decide as before."
            .to_owned(),
    ];
    let path = folder.path.display();
    if folder.is_in_tree {
        notes.push(format!(
            "`core.hooksPath` leads to {path}, among the files of the project: the hooks may show up in `git status`. \
             They name the program by its path on this machine, so rather do not commit them."
        ));
    } else if folder.is_configured {
        notes.push(format!("`core.hooksPath` leads to {path}: other repositories may use the same hooks."));
    }
    if folder.path.ends_with(".husky/_") {
        notes.push(
            "husky writes its folder anew when packages are installed: run `tenure install git` again after that. Until \
             then commits are still noticed, by the hook that husky does not have."
                .to_owned(),
        );
    }
    notes
}
