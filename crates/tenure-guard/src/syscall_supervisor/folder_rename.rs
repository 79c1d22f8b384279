//! A folder that gets another name: every file in it does.

use std::fs;
use std::path::{Path, PathBuf};

use super::answer::CallDenial;
use super::path_classifier::{LeaseRequirement, PathClassifier};
use super::process_tree;
use super::syscall_policy::FileChange;
use crate::syscall_effects::PathChange;

/// The most files that are moved at once.
const MAX_FILES: usize = 5_000;

/// What it takes to move everything in this folder. Git may be asked.
pub fn changes_of_rename(
    scope: &PathClassifier,
    from: &Path,
    to: &Path,
) -> Result<Vec<FileChange>, CallDenial> {
    let sides: Vec<_> = [(from, PathChange::Moved), (to, PathChange::Made)]
        .into_iter()
        .filter(|(folder, _)| !process_tree::without_concurrent_reaping(|| scope.is_exempt_folder(folder)))
        .collect();
    let mut files = Vec::new();
    // What is nobody's on both sides may be large, and is not looked into.
    let mut ahead = if sides.is_empty() { Vec::new() } else { vec![PathBuf::new()] };
    while let Some(folder) = ahead.pop() {
        let unreadable = |error: std::io::Error| {
            CallDenial::busy(format!(
                "{} was not renamed: what is in {} cannot be seen ({error}), and each file needs its lease. Ask for the \
                 right to read it, or leave it where it is.",
                from.display(),
                from.join(&folder).display()
            ))
        };
        for entry in fs::read_dir(from.join(&folder)).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let relative = folder.join(entry.file_name());
            if entry.file_type().map_err(unreadable)?.is_dir() {
                if entry.file_name() != ".git" {
                    ahead.push(relative);
                }
                continue;
            }
            for (folder, change) in &sides {
                let path = folder.join(&relative);
                let belongs = scope.lease_requirement(&path, *change, false);
                // What sessions hold of the ignored files in it is known to the server, which is asked for the whole folder.
                if !matches!(belongs, LeaseRequirement::NotRequired | LeaseRequirement::Ignored(_)) {
                    files.push(FileChange {
                        path,
                        follows: false,
                        change: *change,
                        requirement: belongs,
                        denies_stale: false,
                    });
                }
            }
            if files.len() > 2 * MAX_FILES {
                return Err(CallDenial::busy(format!(
                    "{} was not renamed: it has more than {MAX_FILES} files, and each needs its lease. Move it in smaller parts.",
                    from.display()
                )));
            }
        }
    }
    Ok(files)
}
