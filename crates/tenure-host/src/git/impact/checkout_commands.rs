//! What changes if another tree is put in the place of files: `reset`, `switch`, `checkout`, `restore`, `read-tree`.

use std::ffi::{OsStr, OsString};

use super::super::GitError;
use super::file_lists::Paths;
use super::repository_context::RepositoryContext;

impl RepositoryContext {
    /// Everything that is dirty, and what git writes anew on the way.
    fn discarded_paths(&self) -> Result<Paths, GitError> {
        Ok(self.dirty_paths(false, &[])?.into_iter().chain(self.rewritten_paths(&[])?).collect())
    }

    pub fn reset_hard_impact(&self, to: Option<&OsStr>) -> Result<Paths, GitError> {
        let mut changed = self.discarded_paths()?;
        if let Some(to) = to {
            changed.extend(self.diff_from_head(to)?);
        }
        Ok(changed)
    }

    /// The index becomes that tree, and files follow it. What is dirty and not staged stays.
    pub fn reset_merge_impact(&self, to: Option<&OsStr>) -> Result<Paths, GitError> {
        match to {
            None => self.staged_paths(self.head.as_deref(), &[]),
            Some(to) => match self.resolve_tree(to)? {
                Some(tree) => self.staged_paths(Some(&tree), &[]),
                None => Ok(Paths::new()),
            },
        }
    }

    /// With one tree, the index becomes it. With two, what lies between them is brought here. What is dirty stays, unless it is a reset.
    pub fn read_tree_impact(&self, trees: &[OsString], is_reset: bool) -> Result<Paths, GitError> {
        // This is how a sparse tree is made anew: every file may come or go.
        if self.config_bool("core.sparsecheckout", false)? {
            return self.everything_impact();
        }
        let mut changed = if is_reset { self.discarded_paths()? } else { Paths::new() };
        let trees: Vec<_> =
            trees.iter().filter_map(|tree| self.resolve_tree(tree).transpose()).collect::<Result<_, _>>()?;
        if let ([one, other], false) = (&trees[..], is_reset) {
            return self.diff_trees(Some(one), Some(other));
        }
        for tree in trees {
            changed.extend(self.staged_paths(Some(&tree), &[])?);
        }
        Ok(changed)
    }

    /// Where HEAD differs from this, or from what git may guess by it.
    pub fn diff_from_head(&self, word: &OsStr) -> Result<Paths, GitError> {
        let known = self.resolve_commit(word)?.or(self.resolve_tree(word)?);
        let candidates = known.map_or_else(|| self.guessed_remote_branches(word), |known| Ok(vec![known]))?;
        let mut changed = Paths::new();
        for target in candidates {
            changed.extend(self.diff_trees(self.head.as_deref(), Some(&target))?);
        }
        Ok(changed)
    }

    pub fn switch_impact(&self, to: Option<&OsStr>, is_forced: bool) -> Result<Paths, GitError> {
        // From a branch without a commit, git takes everything along by force.
        let mut changed =
            if is_forced || self.head.is_none() { self.discarded_paths()? } else { Paths::new() };
        if let Some(to) = to {
            changed.extend(self.diff_from_head(to)?);
        }
        Ok(changed)
    }

    pub fn restore_impact(
        &self,
        source: Option<&OsStr>,
        is_merged: bool,
        paths: &[OsString],
    ) -> Result<Paths, GitError> {
        let mut changed = self.rewritten_paths(paths)?;
        if let Some(source) = source {
            // Without such a tree, git refuses; before the first commit, there is nothing to restore from.
            if let Some(tree) = self.resolve_tree(source)? {
                changed.extend(self.staged_paths(Some(&tree), paths)?);
            }
        }
        if is_merged {
            changed.extend(self.resolve_undo_paths(paths)?);
        }
        Ok(changed)
    }

    /// The first word is a branch or a tree if there is one of that name; else it is a path, or a branch of others.
    pub fn checkout_impact(
        &self,
        words: &[OsString],
        after: Option<&[OsString]>,
        is_forced: bool,
        is_merged: bool,
    ) -> Result<Paths, GitError> {
        let (source, paths) = match (words, after) {
            ([first, rest @ ..], Some(after)) => (Some(first), [rest, after].concat()),
            ([first, rest @ ..], None) if self.resolve_tree(first)?.is_some() => (Some(first), rest.to_vec()),
            (words, after) => (None, [words, after.unwrap_or_default()].concat()),
        };
        let source = source.map(OsString::as_os_str);
        if paths.is_empty() {
            return self.switch_impact(source, is_forced);
        }
        let mut changed = self.restore_impact(source, is_merged, &paths)?;
        if let ([word], None) = (words, after) {
            changed.extend(self.diff_from_head(word)?);
        }
        Ok(changed)
    }
}
