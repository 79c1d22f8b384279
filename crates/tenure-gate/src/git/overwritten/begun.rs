//! What may still change by something that was begun: a rebase, a series of picks, patches.

use std::ffi::OsString;

use super::super::GitError;
use super::asking::{Asked, Paths};

/// Where git notes the commits that it goes back or on to.
const ENDS: [&str; 6] = [
    "sequencer/head",
    "rebase-merge/orig-head",
    "rebase-merge/onto",
    "rebase-apply/orig-head",
    "rebase-apply/onto",
    "rebase-apply/abort-safety",
];
/// Where it notes what is left to do.
const LEFT: [&str; 2] = ["sequencer/todo", "rebase-merge/git-rebase-todo"];

impl Asked {
    /// What is dirty, what lies between here and where it began or would end, and what is left to do.
    pub fn begun(&self) -> Result<Paths, GitError> {
        let mut changed = self.dirty(false, &[])?;
        let folder = self.git_folder("--absolute-git-dir")?;
        let text = |name: &str| {
            let content = std::fs::read(folder.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&content).into_owned()
        };
        let mut ends: Vec<_> = ENDS.map(text).into();
        // Patches that are given up go back to here.
        if folder.join("rebase-apply").exists() {
            ends.push(text("ORIG_HEAD"));
        }
        for end in ends {
            if let Some(commit) = self.commit(end.trim().as_ref())? {
                changed.extend(self.between(self.head.as_deref(), Some(&commit))?);
            }
        }
        let left = LEFT.map(text).concat();
        let is_backwards = left.starts_with("revert");
        // `pick ID …`, `fixup -C ID …`; what is no id is passed over.
        let words = left.lines().flat_map(|line| line.split(' ').skip(1).take(2));
        let is_id = |word: &&str| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut commits = Vec::new();
        for word in words.filter(is_id) {
            commits.extend(self.commit(word.as_ref())?.map(OsString::from));
        }
        if !commits.is_empty() {
            match self.picked(&commits, is_backwards)? {
                Some(picked) => changed.extend(picked),
                None => changed.extend(self.tracked(&[])?),
            }
        }
        Ok(changed)
    }
}
