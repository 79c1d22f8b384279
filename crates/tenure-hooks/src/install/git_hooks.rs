//! Hooks in git: three small scripts, each of which calls first whatever was there before it.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use tenure_host::git::{HooksFolder, hooks_folder};

use super::hook_entries::shell_quote;
use super::install_record::{InstallRecord, count_own_folders, missing_folders, remove_folders};
use super::plugin::changed_copy_path;
use super::user_folders::{entry_exists, read_file};
use super::{FileMode, InstallContext, InstallError, InstallPlan, PlannedChange};
use crate::install::hook_entries::shell_unquote;

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
    name.push(EARLIER_SUFFIX);
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

/// By this line a hook is known to be ours.
const OWN_MARKER: &str = "# Written by `tenure install git`; `tenure uninstall git` takes it out again.";

/// What the name of an earlier hook ends with.
pub const EARLIER_SUFFIX: &str = ".before-tenure";

/// A hook of git that we are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitHookKind {
    PreCommit,
    /// After a commit, also one that skipped its checks.
    PostCommit,
    /// After a branch moved, also by a commit without any porcelain.
    ReferenceTransaction,
}

impl GitHookKind {
    pub const ALL: [GitHookKind; 3] =
        [GitHookKind::PreCommit, GitHookKind::PostCommit, GitHookKind::ReferenceTransaction];

    /// Its name, which git gave it.
    pub const fn name(self) -> &'static str {
        match self {
            GitHookKind::PreCommit => "pre-commit",
            GitHookKind::PostCommit => "post-commit",
            GitHookKind::ReferenceTransaction => "reference-transaction",
        }
    }
}

/// Whether this is one of our scripts.
pub fn is_own_script(content: &[u8]) -> bool {
    content.split(|byte| *byte == b'\n').nth(1) == Some(OWN_MARKER.as_bytes())
}

/// The script that calls `earlier`, if there was a hook, and then the program (quoted already). If the program is gone,
/// git must go on as if nothing were here.
pub fn render_script(hook: GitHookKind, program: &str, earlier: Option<&[u8]>) -> String {
    let name = hook.name();
    let run = format!("\"$program\" hook git {name} \"$@\"");
    let there = format!("[ -x \"$0{EARLIER_SUFFIX}\" ]");
    let call = earlier.map(call);
    let body = match (hook, call) {
        (GitHookKind::PreCommit, Some(call)) => format!(
            "if {there}; then\n    {call} || exit $?\nfi\n\
             [ -x \"$program\" ] || exit 0\nexec {run}\n"
        ),
        (GitHookKind::PreCommit | GitHookKind::PostCommit, None) => {
            format!("[ -x \"$program\" ] || exit 0\nexec {run}\n")
        }
        (GitHookKind::PostCommit, Some(call)) => format!(
            "code=0\nif {there}; then\n    {call}\n    code=$?\nfi\n\
             [ -x \"$program\" ] || exit \"$code\"\n\
             [ \"$code\" = 0 ] && exec {run}\n{run}\nexit \"$code\"\n"
        ),
        (GitHookKind::ReferenceTransaction, None) => {
            format!("[ \"$1\" = committed ] || exit 0\n[ -x \"$program\" ] || exit 0\nexec {run}\n")
        }
        // What git says on standard input has to reach both, whole.
        (GitHookKind::ReferenceTransaction, Some(call)) => format!(
            "heard=$(cat; echo .)\nheard=${{heard%.}}\ncode=0\n\
             if {there}; then\n    printf %s \"$heard\" | {call}\n    code=$?\nfi\n\
             if [ \"$1\" = committed ] && [ -x \"$program\" ]; then\n    printf %s \"$heard\" | {run}\nfi\n\
             exit \"$code\"\n"
        ),
    };
    format!("#!/bin/sh\n{OWN_MARKER}\nprogram={program}\n{body}")
}

/// How an earlier hook is called. A script for a shell that looks at its own name (husky's do: it tells them which hook
/// they are) is read by that shell under the name that it had; everything else is just run.
fn call(earlier: &[u8]) -> String {
    let text = String::from_utf8_lossy(earlier);
    let looks_at_its_name = text.contains("$0") || text.contains("${0");
    match text.lines().next().and_then(shell).filter(|_| looks_at_its_name) {
        Some(shell) => format!("{shell} -c '. \"$0{EARLIER_SUFFIX}\"' \"$0\" \"$@\""),
        None => format!("\"$0{EARLIER_SUFFIX}\" \"$@\""),
    }
}

/// The shell of a script by its first line, if that is one whose ways we know.
fn shell(line: &str) -> Option<String> {
    let words: Vec<_> = line.strip_prefix("#!")?.split_whitespace().collect();
    let (interpreter, options) = match words.as_slice() {
        ["/usr/bin/env", shell] => (*shell, [].as_slice()),
        [shell, options @ ..] if shell.starts_with('/') && options.len() <= 1 => (*shell, options),
        _ => return None,
    };
    let is_known = matches!(interpreter.rsplit('/').next(), Some("sh" | "bash" | "dash"));
    let is_plain =
        |word: &&&str| word.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
    let are_options = options.iter().all(|option| option.starts_with('-'));
    (is_known && are_options && words.iter().all(|word| is_plain(&word))).then(|| words.join(" "))
}

/// Which hooks of git are in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHookStatus {
    pub folder: HooksFolder,
    /// Those of them that are ours.
    pub installed: Vec<GitHook>,
    /// The names of those that should be.
    pub missing: Vec<&'static str>,
    /// Whether each is as installing with the same program would write it.
    pub is_complete: bool,
}

/// A hook of git that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHook {
    pub path: PathBuf,
    pub program: Option<PathBuf>,
    /// Whether git may run it. One that it may not is passed over without a word, or with a hint.
    pub is_executable: bool,
}

/// Which hooks of git are in place for the working tree at `place`. Reads, and changes nothing.
pub fn git_hook_status(place: &InstallContext) -> Result<GitHookStatus, InstallError> {
    let folder = folder(place)?;
    let mut found = GitHookStatus { folder, installed: Vec::new(), missing: Vec::new(), is_complete: false };
    for hook in GitHookKind::ALL {
        let path = found.folder.path.join(hook.name());
        match read_if_any(&path)?.filter(|content| is_own_script(content)) {
            Some(content) => found.installed.push(GitHook {
                program: program(&content),
                is_executable: access(&path, Access::EXEC_OK).is_ok(),
                path,
            }),
            None => found.missing.push(hook.name()),
        }
    }
    let program = found.installed.iter().find_map(|hook| hook.program.clone());
    if let Some(program) = program {
        let place = InstallContext { program, ..place.clone() };
        found.is_complete = plan_install(&place)?.changes.is_empty();
    }
    Ok(found)
}

/// What the script calls `program`.
fn program(content: &[u8]) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(content);
    let word = text.lines().find_map(|line| line.strip_prefix("program="))?;
    shell_unquote(word).filter(|program: &PathBuf| program != Path::new(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_scripts_are_recognized_by_their_second_line() {
        for hook in GitHookKind::ALL {
            for earlier in [None, Some(b"#!/bin/sh\n".as_slice())] {
                assert!(is_own_script(render_script(hook, "/x", earlier).as_bytes()));
            }
        }
        assert!(!is_own_script(b"") && !is_own_script(b"#!/bin/sh\n# something\n"));
    }

    #[test]
    fn only_shell_scripts_that_read_their_name_are_sourced() {
        let read_by =
            |text: &str| call(text.as_bytes()).split_once(" -c ").map(|(shell, _)| shell.to_owned());
        assert_eq!(read_by("#!/usr/bin/env sh\n. \"${0%/*}/h\"\n").as_deref(), Some("/usr/bin/env sh"));
        assert_eq!(read_by("#!/bin/bash -e\necho $0\n").as_deref(), Some("/bin/bash -e"));
        assert_eq!(read_by("#!/bin/sh\necho no name\n"), None);
        assert_eq!(read_by("#!/usr/bin/env python3\nprint('$0')\n"), None);
        assert_eq!(read_by("#!/usr/bin/env -S bash -e\n$0\n"), None);
        assert_eq!(read_by("#!/bin/sh; rm\n$0\n"), None);
        assert_eq!(read_by("\x7fELF$0"), None);
    }
}
