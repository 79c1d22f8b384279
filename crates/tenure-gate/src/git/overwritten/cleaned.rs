//! What `clean` takes away.

use std::ffi::OsString;
use std::path::Path;

use super::super::GitError;
use super::super::verbs::{Clean, Ignored, Verb};
use super::asking::Asked;
use super::lists::Paths;

impl Asked {
    pub fn cleaned(&self, clean: &Clean) -> Result<Paths, GitError> {
        if !self.does_clean(clean)? {
            return Ok(Paths::new());
        }
        let mut more: Vec<_> = clean.excluded.iter().map(|pattern| joined("--exclude=", pattern)).collect();
        // With a path, folders are looked into anyway.
        let only_files = !clean.folders && clean.paths.is_empty();
        let folders = only_files.then(|| OsString::from("--directory"));
        more.extend(folders.clone());
        let for_us: Vec<_> = folders.into_iter().collect();
        // What is ignored is nobody's: by what the gate takes for ignored, whatever the agent says is.
        let gone = match clean.ignored {
            Ignored::Stay => self.untracked(&more, &clean.paths)?,
            Ignored::Go => {
                let mut gone = self.untracked_for_us(&more, &clean.paths)?;
                gone.extend(self.untracked(&more, &clean.paths)?);
                gone
            }
            Ignored::GoAlone => {
                let stays = self.untracked(&more, &clean.paths)?;
                let mut gone = self.untracked_for_us(&for_us, &clean.paths)?;
                gone.retain(|path| !stays.contains(path));
                gone
            }
        };
        let is_folder = |path: &Path| self.root.join(path).symlink_metadata().is_ok_and(|kind| kind.is_dir());
        // Repositories stay, unless it was forced twice.
        let stays = |path: &Path| (only_files || !clean.repositories) && is_folder(path);
        Ok(gone.into_iter().filter(|path| !stays(path)).collect())
    }

    /// Ignored files and folders that go away.
    pub fn ignored_by(&self, verb: &Verb) -> Result<Paths, GitError> {
        match verb {
            Verb::Clean(clean) if clean.ignored != Ignored::Stay && self.does_clean(clean)? => {
                self.ignored(&clean.paths, None)
            }
            Verb::Lose { ignored: true, paths, .. } => self.ignored(paths, Some(":/")),
            Verb::WorktreeRemove { .. } => self.ignored(&[], Some(":/")),
            _ => Ok(Paths::new()),
        }
    }

    fn does_clean(&self, clean: &Clean) -> Result<bool, GitError> {
        Ok(clean.is_forced || !self.is_set("clean.requireforce", true)?)
    }
}

fn joined(option: &str, value: &OsString) -> OsString {
    let mut joined = OsString::from(option);
    joined.push(value);
    joined
}
