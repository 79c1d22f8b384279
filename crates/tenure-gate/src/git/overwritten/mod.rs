//! Which files of the working tree a command of git would change or lose, asked before it runs.
//!
//! More than it really changes may be named, never less. Ignored files are nobody's and are left out. What goes on in a submodule,
//! and after a fetch, git does by other processes of git, which are asked about when they start. So it does when a merge has failed
//! and it puts back what was dirty (`read-tree --reset -u`).

mod asking;
mod begun;
mod merged;
mod settled;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::GitError;
use super::changes::in_parts;
use super::verbs::{Global, Verb, read};
use asking::{Asked, Paths};

/// What a command of git would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overwritten {
    /// The top of the working tree.
    pub root: PathBuf,
    /// For people: `git stash`.
    pub verb: String,
    /// Relative to `root`, in order, each once. A repository inside this one is one path: its folder.
    pub paths: Vec<PathBuf>,
}

/// Which files of the working tree this command line would change or lose, run in `cwd`. `arguments` begin with the name of
/// the program; of `environment`, only what says where the repository is counts.
///
/// Nothing if it would change none, or if there is no working tree.
///
/// `stash`, `reset --hard`, `checkout`, `switch`, `restore`: what is dirty and thrown away, and what differs from where it goes.
/// `merge`, `cherry-pick`, `revert`, `stash pop`: what the other side changed. `clean`: what is untracked. `rebase`: what is
/// dirty, and all that differs on either side. `am` and `submodule update`: what is dirty, since nobody knows better. `read-tree -u`:
/// what is dirty, and where its trees differ. `checkout-index -f`: what is not as in the index. `sparse-checkout`, `switch
/// --orphan` and `rebase --root`: every tracked file. `worktree remove`: all of that tree.
pub fn overwritten(
    arguments: &[OsString],
    cwd: &Path,
    environment: &[(OsString, OsString)],
) -> Result<Option<Overwritten>, GitError> {
    let Some(line) = read(arguments) else { return Ok(None) };
    let Some(mut asked) = Asked::new(&line.global, cwd, environment)? else { return Ok(None) };
    let changed = if let Verb::WorktreeRemove { tree } = &line.verb {
        let Some(folder) = asked.other_tree(&cwd.join(&line.global.folder), tree)? else { return Ok(None) };
        let Some(other) = Asked::new(&Global::default(), &folder, &[])? else { return Ok(None) };
        asked = other;
        asked.tracked(&[])?.into_iter().chain(asked.untracked(&[])?).collect()
    } else {
        let settings = &line.global.settings;
        let stashes = settings.iter().any(|setting| setting == "merge.autostash");
        asked.changed_by(&line.verb, stashes)?
    };
    let paths: Vec<_> = asked.with_what_is_in_the_way(changed)?.into_iter().collect();
    Ok((!paths.is_empty()).then_some(Overwritten { root: asked.root, verb: line.name, paths }))
}

impl Asked {
    fn changed_by(&self, verb: &Verb, stashes: bool) -> Result<Paths, GitError> {
        match verb {
            Verb::Lose { untracked, paths } => self.dirty(*untracked, paths),
            Verb::ResetHard { to } => {
                let mut changed = self.dirty(false, &[])?;
                if let Some(to) = to {
                    changed.extend(self.on_the_way_to(to)?);
                }
                Ok(changed)
            }
            Verb::Checkout { words, after, is_forced, is_merged } => {
                self.checkout(words, after.as_deref(), *is_forced || *is_merged, *is_merged)
            }
            Verb::Switch { to, is_forced } => self.switch(to.as_deref(), *is_forced),
            Verb::Restore { source, is_merged, paths } => self.restore(source.as_deref(), *is_merged, paths),
            Verb::Clean { paths } => self.untracked(paths),
            Verb::Remove { paths } => self.tracked(paths),
            Verb::Merge { with, autostash } => self.merge(with, *autostash, stashes),
            Verb::Pick { commits, is_backwards } => {
                let picked = self.picked(commits, *is_backwards)?;
                picked.map_or_else(|| self.everything(), Ok)
            }
            Verb::StashApply { stash, is_branch } => self.stash_apply(stash.as_deref(), *is_branch),
            Verb::Rebase { onto, upstream, branch } => {
                self.rebase(onto.as_deref(), upstream.as_deref(), branch.as_deref())
            }
            Verb::Resume => self.begun(),
            Verb::ReadTree { trees } => {
                let mut changed = self.dirty(false, &[])?;
                for tree in trees {
                    if let Some(tree) = self.tree(tree)? {
                        changed.extend(self.between(self.head.as_deref(), Some(&tree))?);
                    }
                }
                Ok(changed)
            }
            Verb::CheckoutIndex { files } => self.against_index(files),
            Verb::Everything | Verb::WorktreeRemove { .. } => self.everything(),
        }
    }

    fn everything(&self) -> Result<Paths, GitError> {
        Ok(self.tracked(&[])?.into_iter().chain(self.dirty(false, &[])?).collect())
    }

    /// Where HEAD differs from this, or from what git may guess by it.
    fn on_the_way_to(&self, word: &OsStr) -> Result<Paths, GitError> {
        let known = self.commit(word)?.or(self.tree(word)?);
        let targets = known.map_or_else(|| self.guessed(word), |known| Ok(vec![known]))?;
        let mut changed = Paths::new();
        for target in targets {
            changed.extend(self.between(self.head.as_deref(), Some(&target))?);
        }
        Ok(changed)
    }

    fn switch(&self, to: Option<&OsStr>, is_forced: bool) -> Result<Paths, GitError> {
        // From a branch without a commit, git takes everything along by force.
        let mut changed =
            if is_forced || self.head.is_none() { self.dirty(false, &[])? } else { Paths::new() };
        if let Some(to) = to {
            changed.extend(self.on_the_way_to(to)?);
        }
        Ok(changed)
    }

    fn restore(
        &self,
        source: Option<&OsStr>,
        is_merged: bool,
        paths: &[OsString],
    ) -> Result<Paths, GitError> {
        let mut changed = self.dirty(false, paths)?;
        if let Some(tree) = source.map(|source| self.tree(source)).transpose()?.flatten() {
            changed.extend(self.against(&tree, paths)?);
        }
        if is_merged {
            changed.extend(self.resolved(paths)?);
        }
        Ok(changed)
    }

    /// The first word is a branch or a tree if there is one of that name; else it is a path, or a branch of others.
    fn checkout(
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

    fn merge(&self, with: &[OsString], autostash: Option<bool>, stashes: bool) -> Result<Paths, GitError> {
        let mut changed = Paths::new();
        if autostash.map_or_else(|| Ok(stashes || self.is_set("merge.autostash")?), Ok)? {
            changed = self.dirty(false, &[])?;
        }
        let upstream = [OsString::from("@{upstream}")];
        let mut commits = Vec::new();
        for word in if with.is_empty() { &upstream } else { with } {
            commits.extend(self.commit(word)?);
            // Several branches may have been fetched at once.
            if word == "FETCH_HEAD" {
                commits.extend(self.fetched()?);
            }
        }
        for commit in commits {
            let head = self.head.as_deref();
            let bases = head.map(|head| self.bases(head, &commit)).transpose()?.unwrap_or_default();
            if bases.is_empty() {
                changed.extend(self.between(head, Some(&commit))?);
            }
            for base in bases {
                changed.extend(self.merged(Some(&base), Some(&commit))?);
            }
        }
        Ok(changed)
    }

    fn stash_apply(&self, stash: Option<&OsStr>, is_branch: bool) -> Result<Paths, GitError> {
        let name = match stash {
            None => "refs/stash".into(),
            Some(word) if word.as_bytes().iter().all(u8::is_ascii_digit) => {
                let mut name = OsString::from("stash@{");
                name.push(word);
                name.push("}");
                name
            }
            Some(word) => word.to_owned(),
        };
        let Some(stash) = self.commit(&name)? else { return Ok(Paths::new()) };
        let parent = |number: u8| self.commit(OsStr::new(&format!("{stash}^{number}")));
        let (base, index, untracked) = (parent(1)?, parent(2)?, parent(3)?);
        let mut changed = self.merged(base.as_deref(), Some(&stash))?;
        changed.extend(self.between(base.as_deref(), index.as_deref().or(base.as_deref()))?);
        changed.extend(self.between(None, untracked.as_deref())?);
        if is_branch {
            changed.extend(self.between(self.head.as_deref(), base.as_deref())?);
        }
        Ok(changed)
    }

    fn rebase(
        &self,
        onto: Option<&OsStr>,
        upstream: Option<&OsStr>,
        branch: Option<&OsStr>,
    ) -> Result<Paths, GitError> {
        let mut changed = self.dirty(false, &[])?;
        let upstream = upstream.unwrap_or(OsStr::new("@{upstream}"));
        let onto = self.commit(onto.unwrap_or(upstream))?;
        let upstream = self.commit(upstream)?;
        let ours = branch.map_or_else(|| Ok(self.head.clone()), |branch| self.commit(branch))?;
        changed.extend(self.between(self.head.as_deref(), ours.as_deref().or(self.head.as_deref()))?);
        let (Some(ours), Some(upstream), Some(onto)) = (ours, upstream, onto) else { return Ok(changed) };
        changed.extend(self.between(Some(&ours), Some(&onto))?);
        // It may stop at any of the commits that it takes along.
        let range = OsString::from(format!("{upstream}..{ours}"));
        match self.picked(&[range], false)? {
            Some(picked) => changed.extend(picked),
            None => changed.extend(self.tracked(&[])?),
        }
        Ok(changed)
    }

    /// With files where a folder has to be, and all that is in folders where a file has to be.
    fn with_what_is_in_the_way(&self, mut changed: Paths) -> Result<Paths, GitError> {
        let (mut files, mut folders, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for path in &changed {
            let kind = |path: &Path| self.root.join(path).symlink_metadata().ok();
            if kind(path).is_some_and(|kind| kind.is_dir()) {
                folders.push(path.clone());
            }
            let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
            for above in above.take_while(|above| seen.insert(above.to_path_buf())) {
                if kind(above).is_some_and(|kind| !kind.is_dir()) {
                    files.push(above.to_path_buf());
                }
            }
        }
        for part in in_parts(&folders) {
            changed.extend(self.below(&part)?);
        }
        changed.extend(files);
        Ok(changed)
    }
}
