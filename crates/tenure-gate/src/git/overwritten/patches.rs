//! What patches change: it stands in them, and git reads it without applying anything.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::super::changes::is_below;
use super::super::verbs::Patches;
use super::asking::Asked;
use super::lists::{Paths, lines};

impl Asked {
    /// `apply`. A file that cannot be read as a patch, git does not apply either.
    pub fn applied(&self, patches: &Patches) -> Result<Paths, GitError> {
        let Patched { mut old, new, .. } = self.patched(&self.folder, patches)?;
        old.extend(new);
        // In a folder, git leaves out what is not below; unless one name of a file is. From the top, nothing is left out.
        let whole = self.patched(&self.root, patches)?;
        if whole.old != whole.new {
            old.extend(whole.old.into_iter().chain(whole.new));
        }
        if patches.rejects {
            old.extend(old.clone().into_iter().map(|path| path.with_added(".rej")));
        }
        Ok(old)
    }

    /// `am`, which works from the top. It refuses where something is staged.
    pub fn applied_mails(&self, patches: &Patches) -> Result<Paths, GitError> {
        let patched = self.patched(&self.root, patches)?;
        let mut changed = self.staged(self.head.as_deref(), &[])?;
        // From standard input, or mails that only `am` can read: nobody knows.
        if !patched.is_whole || patches.files.is_empty() {
            changed.extend(self.dirty(false, &[])?);
        }
        let is_merged = patches.is_merged.map_or_else(|| self.is_set("am.threeway", false), Ok)?;
        if is_merged && self.follows_names(&patched)? {
            changed.extend(self.everything()?);
        }
        if patches.rejects {
            changed.extend(patched.old.iter().map(|path| path.with_added(".rej")));
        }
        changed.extend(patched.old.into_iter().chain(patched.new));
        Ok(changed)
    }

    /// A patch that does not fit is merged, and then follows files to other names: where it changes names itself, or changes what
    /// is not there by that name.
    fn follows_names(&self, patched: &Patched) -> Result<bool, GitError> {
        if patched.old != patched.new {
            return Ok(true);
        }
        let tracked = self.tracked(&[])?;
        Ok(patched.old.iter().any(|path| !tracked.contains(path) && !patched.made.contains(path)))
    }

    fn patched(&self, folder: &Path, patches: &Patches) -> Result<Patched, GitError> {
        let all = patches.files.len();
        let files: Vec<_> = patches.files.iter().filter_map(|file| self.plain_file(file)).collect();
        let mut patched = Patched { is_whole: files.len() == all, ..Patched::default() };
        if !files.is_empty() && !self.read_patches(folder, patches, &files, &mut patched)? {
            // One of them ends the whole question, and no other.
            for file in files {
                patched.is_whole &= self.read_patches(folder, patches, &[file], &mut patched)?;
            }
        }
        Ok(patched)
    }

    fn read_patches(
        &self,
        folder: &Path,
        patches: &Patches,
        files: &[OsString],
        patched: &mut Patched,
    ) -> Result<bool, GitError> {
        let ask = |options: &[&str]| {
            let options = options.iter().map(OsString::from).chain(patches.options.iter().cloned());
            let arguments = options.chain(["--".into()]).chain(files.iter().cloned());
            let mut question = self.question("apply", arguments);
            question.root = folder;
            question.answer()
        };
        let new = match ask(&["--numstat", "-z"]) {
            Err(GitError::Failed { .. }) => return Ok(false),
            said => names(&said?),
        };
        // Backwards, the old name of a file is its new one.
        patched.old.extend(names(&ask(&["--numstat", "-z", "-R"])?));
        let made = lines(&ask(&["--summary"])?);
        let made = made.iter().filter_map(|line| line.strip_prefix(" create mode ")?.split_once(' '));
        patched.made.extend(made.map(|(_, name)| PathBuf::from(name)));
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
struct Patched {
    old: Paths,
    new: Paths,
    made: Paths,
    is_whole: bool,
}

/// The names in `1<tab>2<tab>name`.
fn names(said: &[u8]) -> Vec<PathBuf> {
    let names = said.split(|byte| *byte == 0).filter_map(|line| line.splitn(3, |byte| *byte == b'\t').nth(2));
    names.map(|name| PathBuf::from(OsStr::from_bytes(name))).filter(|path| is_below(path)).collect()
}

trait Added {
    fn with_added(&self, end: &str) -> PathBuf;
}

impl Added for PathBuf {
    fn with_added(&self, end: &str) -> PathBuf {
        let mut name = self.clone().into_os_string();
        name.push(end);
        name.into()
    }
}
