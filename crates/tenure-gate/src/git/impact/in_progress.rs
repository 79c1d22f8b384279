//! What may still change by something that was begun: a merge, a rebase, a series of picks, patches.

use std::ffi::OsString;

use super::super::GitError;
use super::super::command_line::SequencerAction;
use super::file_lists::Paths;
use super::repository_context::RepositoryContext;

/// Where git notes the commits that it goes back or on to.
const END_COMMIT_FILES: [&str; 6] = [
    "sequencer/head",
    "rebase-merge/orig-head",
    "rebase-merge/onto",
    "rebase-apply/orig-head",
    "rebase-apply/onto",
    "rebase-apply/abort-safety",
];
/// Where it notes what is left to do.
const SEQUENCER_TODO: &str = "sequencer/todo";
const REBASE_TODO: &str = "rebase-merge/git-rebase-todo";

impl RepositoryContext {
    /// A rebase or patches: what is dirty, what lies between here and where it began or would end, and what is left to do.
    pub fn resume_impact(&self) -> Result<Paths, GitError> {
        let mut changed = self.dirty_paths(false, &[])?;
        let mut ends = END_COMMIT_FILES.to_vec();
        // Patches that are given up go back to here.
        if self.rev_parse_path("--absolute-git-dir")?.join("rebase-apply").exists() {
            ends.push("ORIG_HEAD");
        }
        for end in ends {
            if let Some(commit) = self.resolve_commit(self.read_git_file(end)?.trim().as_ref())? {
                changed.extend(self.diff_trees(self.head.as_deref(), Some(&commit))?);
            }
        }
        changed.extend(self.remaining_todo_impact(&[SEQUENCER_TODO, REBASE_TODO])?);
        Ok(changed)
    }

    /// A merge that is given up is `reset --merge`: what is dirty and not staged stays. Unless something was put away for it, which
    /// comes back.
    pub fn merge_abort_impact(&self) -> Result<Paths, GitError> {
        let stash = self.read_git_file("MERGE_AUTOSTASH")?;
        let mut changed = self.staged_paths(self.head.as_deref(), &[])?;
        if !stash.is_empty() {
            changed.extend(self.dirty_paths(false, &[])?);
            changed.extend(self.stash_apply_impact(Some(stash.trim().as_ref()), false)?);
        }
        Ok(changed)
    }

    /// A series of picks. Giving up and passing over is `reset --merge`: what is dirty and not staged stays.
    pub fn sequencer_impact(&self, how: SequencerAction) -> Result<Paths, GitError> {
        let mut changed = Paths::new();
        if how.aborts || how.skips {
            changed.extend(self.staged_paths(self.head.as_deref(), &[])?);
        }
        if how.aborts
            && let Some(begin) = self.resolve_commit(self.read_git_file("sequencer/head")?.trim().as_ref())?
        {
            changed.extend(self.staged_paths(Some(&begin), &[])?);
        }
        if how.skips || how.continues {
            changed.extend(self.remaining_todo_impact(&[SEQUENCER_TODO])?);
        }
        Ok(changed)
    }

    fn remaining_todo_impact(&self, lists: &[&str]) -> Result<Paths, GitError> {
        let mut todo = String::new();
        for list in lists {
            todo += &self.read_git_file(list)?;
        }
        let is_backwards = todo.starts_with("revert");
        // `pick ID …`, `fixup -C ID …`; what is no id is passed over.
        let words = todo.lines().flat_map(|line| line.split(' ').skip(1).take(2));
        let is_id = |word: &&str| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut commits = Vec::new();
        for word in words.filter(is_id) {
            commits.extend(self.resolve_commit(word.as_ref())?.map(OsString::from));
        }
        if commits.is_empty() {
            return Ok(Paths::new());
        }
        self.cherry_pick_impact(&commits, is_backwards)?.map_or_else(|| self.tracked_paths(&[]), Ok)
    }
}
