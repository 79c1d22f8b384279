//! What changes if another tree is put in the place of files: `reset`, `switch`, `checkout`, `restore`, `read-tree`.

use std::ffi::{OsStr, OsString};

use super::super::GitError;
use super::asking::Asked;
use super::lists::Paths;

impl Asked {
    /// Everything that is dirty, and what git writes anew on the way.
    fn thrown_away(&self) -> Result<Paths, GitError> {
        Ok(self.dirty(false, &[])?.into_iter().chain(self.touched(&[])?).collect())
    }

    pub fn reset_hard(&self, to: Option<&OsStr>) -> Result<Paths, GitError> {
        let mut changed = self.thrown_away()?;
        if let Some(to) = to {
            changed.extend(self.on_the_way_to(to)?);
        }
        Ok(changed)
    }

    /// The index becomes that tree, and files follow it. What is dirty and not staged stays.
    pub fn reset_merge(&self, to: Option<&OsStr>) -> Result<Paths, GitError> {
        match to {
            None => self.staged(self.head.as_deref(), &[]),
            Some(to) => match self.tree(to)? {
                Some(tree) => self.staged(Some(&tree), &[]),
                None => Ok(Paths::new()),
            },
        }
    }

    /// With one tree, the index becomes it. With two, what lies between them is brought here. What is dirty stays, unless it is a reset.
    pub fn read_tree(&self, trees: &[OsString], is_reset: bool) -> Result<Paths, GitError> {
        // This is how a sparse tree is made anew: every file may come or go.
        if self.is_set("core.sparsecheckout", false)? {
            return self.everything();
        }
        let mut changed = if is_reset { self.thrown_away()? } else { Paths::new() };
        let trees: Vec<_> =
            trees.iter().filter_map(|tree| self.tree(tree).transpose()).collect::<Result<_, _>>()?;
        if let ([one, other], false) = (&trees[..], is_reset) {
            return self.between(Some(one), Some(other));
        }
        for tree in trees {
            changed.extend(self.staged(Some(&tree), &[])?);
        }
        Ok(changed)
    }

    /// Where HEAD differs from this, or from what git may guess by it.
    pub fn on_the_way_to(&self, word: &OsStr) -> Result<Paths, GitError> {
        let known = self.commit(word)?.or(self.tree(word)?);
        let targets = known.map_or_else(|| self.guessed(word), |known| Ok(vec![known]))?;
        let mut changed = Paths::new();
        for target in targets {
            changed.extend(self.between(self.head.as_deref(), Some(&target))?);
        }
        Ok(changed)
    }

    pub fn switch(&self, to: Option<&OsStr>, is_forced: bool) -> Result<Paths, GitError> {
        // From a branch without a commit, git takes everything along by force.
        let mut changed = if is_forced || self.head.is_none() { self.thrown_away()? } else { Paths::new() };
        if let Some(to) = to {
            changed.extend(self.on_the_way_to(to)?);
        }
        Ok(changed)
    }

    pub fn restore(
        &self,
        source: Option<&OsStr>,
        is_merged: bool,
        paths: &[OsString],
    ) -> Result<Paths, GitError> {
        let mut changed = self.touched(paths)?;
        if let Some(source) = source {
            // Without such a tree, git refuses; before the first commit, there is nothing to restore from.
            if let Some(tree) = self.tree(source)? {
                changed.extend(self.staged(Some(&tree), paths)?);
            }
        }
        if is_merged {
            changed.extend(self.resolved(paths)?);
        }
        Ok(changed)
    }

    /// The first word is a branch or a tree if there is one of that name; else it is a path, or a branch of others.
    pub fn checkout(
        &self,
        words: &[OsString],
        after: Option<&[OsString]>,
        is_forced: bool,
        is_merged: bool,
    ) -> Result<Paths, GitError> {
        let (source, paths) = match (words, after) {
            ([first, rest @ ..], Some(after)) => (Some(first), [rest, after].concat()),
            ([first, rest @ ..], None) if self.tree(first)?.is_some() => (Some(first), rest.to_vec()),
            (words, after) => (None, [words, after.unwrap_or_default()].concat()),
        };
        let source = source.map(OsString::as_os_str);
        if paths.is_empty() {
            return self.switch(source, is_forced);
        }
        let mut changed = self.restore(source, is_merged, &paths)?;
        if let ([word], None) = (words, after) {
            changed.extend(self.on_the_way_to(word)?);
        }
        Ok(changed)
    }
}
