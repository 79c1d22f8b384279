//! What may still change by something that was begun: a merge, a rebase, a series of picks, patches.

use std::ffi::OsString;

use super::super::GitError;
use super::super::verbs::Resumed;
use super::asking::Asked;
use super::lists::Paths;

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
const SERIES: &str = "sequencer/todo";
const REBASE: &str = "rebase-merge/git-rebase-todo";

impl Asked {
    /// A rebase or patches: what is dirty, what lies between here and where it began or would end, and what is left to do.
    pub fn begun(&self) -> Result<Paths, GitError> {
        let mut changed = self.dirty(false, &[])?;
        let mut ends = ENDS.to_vec();
        // Patches that are given up go back to here.
        if self.git_folder("--absolute-git-dir")?.join("rebase-apply").exists() {
            ends.push("ORIG_HEAD");
        }
        for end in ends {
            if let Some(commit) = self.commit(self.noted(end)?.trim().as_ref())? {
                changed.extend(self.between(self.head.as_deref(), Some(&commit))?);
            }
        }
        changed.extend(self.left_to_do(&[SERIES, REBASE])?);
        Ok(changed)
    }

    /// A merge that is given up is `reset --merge`: what is dirty and not staged stays. Unless something was put away for it, which
    /// comes back.
    pub fn merge_given_up(&self) -> Result<Paths, GitError> {
        let stash = self.noted("MERGE_AUTOSTASH")?;
        let mut changed = self.staged(self.head.as_deref(), &[])?;
        if !stash.is_empty() {
            changed.extend(self.dirty(false, &[])?);
            changed.extend(self.stash_apply(Some(stash.trim().as_ref()), false)?);
        }
        Ok(changed)
    }

    /// A series of picks. Giving up and passing over is `reset --merge`: what is dirty and not staged stays.
    pub fn series(&self, how: Resumed) -> Result<Paths, GitError> {
        let mut changed = Paths::new();
        if how.gives_up || how.passes_over {
            changed.extend(self.staged(self.head.as_deref(), &[])?);
        }
        if how.gives_up
            && let Some(begin) = self.commit(self.noted("sequencer/head")?.trim().as_ref())?
        {
            changed.extend(self.staged(Some(&begin), &[])?);
        }
        if how.passes_over || how.goes_on {
            changed.extend(self.left_to_do(&[SERIES])?);
        }
        Ok(changed)
    }

    fn left_to_do(&self, lists: &[&str]) -> Result<Paths, GitError> {
        let mut left = String::new();
        for list in lists {
            left += &self.noted(list)?;
        }
        let is_backwards = left.starts_with("revert");
        // `pick ID …`, `fixup -C ID …`; what is no id is passed over.
        let words = left.lines().flat_map(|line| line.split(' ').skip(1).take(2));
        let is_id = |word: &&str| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut commits = Vec::new();
        for word in words.filter(is_id) {
            commits.extend(self.commit(word.as_ref())?.map(OsString::from));
        }
        if commits.is_empty() {
            return Ok(Paths::new());
        }
        self.picked(&commits, is_backwards)?.map_or_else(|| self.tracked(&[]), Ok)
    }
}
