//! What patches change: it stands in them, and git reads it without applying anything.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::super::changed_paths::is_below_root;
use super::super::command_line::PatchArguments;
use super::file_lists::{Paths, lines};
use super::repository_context::RepositoryContext;

impl RepositoryContext {
    /// `apply`. A file that cannot be read as a patch, git does not apply either.
    pub fn apply_impact(&self, patches: &PatchArguments) -> Result<Paths, GitError> {
        let PatchPaths { mut old, new, .. } = self.read_patch_paths(&self.folder, patches)?;
        old.extend(new);
        // In a folder, git leaves out what is not below; unless one name of a file is. From the top, nothing is left out.
        let whole = self.read_patch_paths(&self.root, patches)?;
        if whole.old != whole.new {
            old.extend(whole.old.into_iter().chain(whole.new));
        }
        if patches.rejects {
            old.extend(old.clone().into_iter().map(|path| path.with_suffix(".rej")));
        }
        Ok(old)
    }

    /// `am`, which works from the top. It refuses where something is staged.
    pub fn am_impact(&self, patches: &PatchArguments) -> Result<Paths, GitError> {
        let patched = self.read_patch_paths(&self.root, patches)?;
        let mut changed = self.staged_paths(self.head.as_deref(), &[])?;
        // From standard input, or mails that only `am` can read: nobody knows.
        if !patched.is_complete || patches.files.is_empty() {
            changed.extend(self.dirty_paths(false, &[])?);
        }
        let is_merged = patches.is_merged.map_or_else(|| self.config_bool("am.threeway", false), Ok)?;
        if is_merged && self.may_follow_renames(&patched)? {
            changed.extend(self.everything_impact()?);
        }
        if patches.rejects {
            changed.extend(patched.old.iter().map(|path| path.with_suffix(".rej")));
        }
        changed.extend(patched.old.into_iter().chain(patched.new));
        Ok(changed)
    }

    /// A patch that does not fit is merged, and then follows files to other names: where it changes names itself, or changes what
    /// is not there by that name.
    fn may_follow_renames(&self, patched: &PatchPaths) -> Result<bool, GitError> {
        if patched.old != patched.new {
            return Ok(true);
        }
        let tracked = self.tracked_paths(&[])?;
        Ok(patched.old.iter().any(|path| !tracked.contains(path) && !patched.created.contains(path)))
    }

    fn read_patch_paths(&self, folder: &Path, patches: &PatchArguments) -> Result<PatchPaths, GitError> {
        let all = patches.files.len();
        let files: Vec<_> = patches.files.iter().filter_map(|file| self.plain_file(file)).collect();
        let mut patched = PatchPaths { is_complete: files.len() == all, ..PatchPaths::default() };
        if !files.is_empty() && !self.read_patches(folder, patches, &files, &mut patched)? {
            // One of them ends the whole question, and no other.
            for file in files {
                patched.is_complete &= self.read_patches(folder, patches, &[file], &mut patched)?;
            }
        }
        Ok(patched)
    }

    fn read_patches(
        &self,
        folder: &Path,
        patches: &PatchArguments,
        files: &[OsString],
        patched: &mut PatchPaths,
    ) -> Result<bool, GitError> {
        let ask = |options: &[&str]| {
            let options = options.iter().map(OsString::from).chain(patches.options.iter().cloned());
            let arguments = options.chain(["--".into()]).chain(files.iter().cloned());
            let mut query = self.query("apply", arguments);
            query.root = folder;
            query.output()
        };
        let new = match ask(&["--numstat", "-z"]) {
            Err(GitError::Failed { .. }) => return Ok(false),
            output => numstat_paths(&output?),
        };
        // Backwards, the old name of a file is its new one.
        patched.old.extend(numstat_paths(&ask(&["--numstat", "-z", "-R"])?));
        let made = lines(&ask(&["--summary"])?);
        let made = made.iter().filter_map(|line| line.strip_prefix(" create mode ")?.split_once(' '));
        patched.created.extend(made.map(|(_, name)| PathBuf::from(name)));
        patched.new.extend(new);
        Ok(true)
    }

    /// Where a patch is, if reading it takes nothing away from whoever reads it next. A descriptor of the agent is none of ours.
    fn plain_file(&self, file: &OsStr) -> Option<OsString> {
        let path = self.folder.join(file);
        let is_ours = ["/dev/fd", "/dev/stdin", "/proc"].iter().any(|place| path.starts_with(place));
        (!is_ours && path.metadata().is_ok_and(|kind| kind.is_file())).then_some(path.into_os_string())
    }
}

#[derive(Default)]
struct PatchPaths {
    old: Paths,
    new: Paths,
    created: Paths,
    is_complete: bool,
}

/// The names in `1<tab>2<tab>name`.
fn numstat_paths(output: &[u8]) -> Vec<PathBuf> {
    let names =
        output.split(|byte| *byte == 0).filter_map(|line| line.splitn(3, |byte| *byte == b'\t').nth(2));
    names.map(|name| PathBuf::from(OsStr::from_bytes(name))).filter(|path| is_below_root(path)).collect()
}

trait AppendSuffix {
    fn with_suffix(&self, end: &str) -> PathBuf;
}

impl AppendSuffix for PathBuf {
    fn with_suffix(&self, end: &str) -> PathBuf {
        let mut name = self.clone().into_os_string();
        name.push(end);
        name.into()
    }
}
