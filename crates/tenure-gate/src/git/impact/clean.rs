//! What `clean` takes away.

use std::ffi::OsString;
use std::path::Path;

use super::super::GitError;
use super::super::command_line::{CleanOptions, GitOperation, IgnoredFilesMode};
use super::file_lists::Paths;
use super::repository_context::RepositoryContext;

impl RepositoryContext {
    pub fn clean_impact(&self, clean: &CleanOptions) -> Result<Paths, GitError> {
        if !self.will_clean(clean)? {
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
            IgnoredFilesMode::Keep => self.untracked_paths(&more, &clean.paths)?,
            IgnoredFilesMode::Remove => {
                let mut gone = self.untracked_paths_by_own_settings(&more, &clean.paths)?;
                gone.extend(self.untracked_paths(&more, &clean.paths)?);
                gone
            }
            IgnoredFilesMode::RemoveOnly => {
                let stays = self.untracked_paths(&more, &clean.paths)?;
                let mut gone = self.untracked_paths_by_own_settings(&for_us, &clean.paths)?;
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
    pub fn ignored_removed_by(&self, verb: &GitOperation) -> Result<Paths, GitError> {
        match verb {
            GitOperation::Clean(clean)
                if clean.ignored != IgnoredFilesMode::Keep && self.will_clean(clean)? =>
            {
                self.ignored_paths(&clean.paths, None)
            }
            GitOperation::Discard { ignored: true, paths, .. } => self.ignored_paths(paths, Some(":/")),
            GitOperation::WorktreeRemove { .. } => self.ignored_paths(&[], Some(":/")),
            _ => Ok(Paths::new()),
        }
    }

    fn will_clean(&self, clean: &CleanOptions) -> Result<bool, GitError> {
        Ok(clean.is_forced || !self.config_bool("clean.requireforce", true)?)
    }
}

fn joined(option: &str, value: &OsString) -> OsString {
    let mut joined = OsString::from(option);
    joined.push(value);
    joined
}
