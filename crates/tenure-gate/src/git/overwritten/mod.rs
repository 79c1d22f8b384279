//! Which files of the working tree a command of git would change or lose, asked before it runs.
//!
//! More than it really changes may be named, never less. Ignored files are nobody's and are left out. What goes on in a submodule,
//! and after a fetch, git does by other processes of git, which are asked about when they start. So it does when a merge has failed
//! and it puts back what was dirty (`read-tree --reset -u`).

mod asking;
mod begun;
mod brought;
mod cleaned;
mod inner;
mod lists;
mod merged;
mod patches;
mod renamed;
mod settled;
mod trees;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::GitError;
use super::changes::in_parts;
use super::verbs::{Verb, read};
use asking::Asked;
use lists::Paths;

/// What a command of git would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overwritten {
    /// The top of the working tree.
    pub root: PathBuf,
    /// For people: `git stash`.
    pub verb: String,
    /// Relative to `root`, in order, each once. A repository inside this one is one path: its folder. Where git takes such a
    /// repository away, its files are named instead.
    pub paths: Vec<PathBuf>,
    /// Ignored files and folders that go away too, relative to `root`, in order. Nobody leases them, unless somebody did before they
    /// were ignored.
    pub ignored: Vec<PathBuf>,
    /// It goes on into the submodules of this tree, by other processes of git.
    pub submodules: bool,
}

/// Which files of the working tree this command line would change or lose, run in `cwd`. `arguments` begin with the name of
/// the program. `environment` is that of the program; of that, what [`tells_git`](super::tells_git) says counts, and what is not
/// there is not set, whatever the environment of this process says.
///
/// Nothing if it would change none, or if there is no working tree.
///
/// `stash`, `reset --hard`, `checkout`, `switch`, `restore`: what is dirty and thrown away, what was touched and is written anew, and
/// what differs from where it goes. `reset --merge`, `merge --abort` and `cherry-pick --abort`: what is staged. `merge`,
/// `cherry-pick`, `revert`, `stash pop`: what the other side changed. `clean`: what is untracked. `rebase`: what is dirty, and all
/// that differs on either side. `apply` and `am`: what their patches name. `mv`: both names. `read-tree -u`: where its trees differ
/// from the index, and with `--reset` what is dirty. `checkout-index -f`: what is not as in the index. `sparse-checkout`, `switch
/// --orphan` and `rebase --root`: every tracked file. `worktree remove`, `submodule deinit`: all of that tree.
pub fn overwritten(
    arguments: &[OsString],
    cwd: &Path,
    environment: &[(OsString, OsString)],
) -> Result<Option<Overwritten>, GitError> {
    let Some(line) = read(arguments) else { return Ok(None) };
    let Some(mut asked) = Asked::new(&line.global, cwd, environment)? else { return Ok(None) };
    if let Verb::WorktreeRemove { tree } = &line.verb {
        let Some(folder) = asked.other_tree(&cwd.join(&line.global.folder), tree)? else { return Ok(None) };
        let Some(other) = asked.elsewhere(&folder)? else { return Ok(None) };
        asked = other;
    }
    let mut paths = asked.with_what_is_in_the_way(asked.changed_by(&line.verb)?)?;
    let mut ignored = asked.ignored_by(&line.verb)?;
    if line.verb.takes_repositories() {
        let (files, inside) = asked.with_inner_files(paths)?;
        paths = files;
        ignored.extend(inside);
    }
    let recurses = line.recurses.map_or_else(|| asked.is_set("submodule.recurse", false), Ok)?;
    let submodules = recurses && !asked.submodules(&[])?.is_empty();
    let is_any = !paths.is_empty() || !ignored.is_empty() || submodules;
    Ok(is_any.then(|| Overwritten {
        root: asked.root,
        verb: line.name,
        paths: paths.into_iter().collect(),
        ignored: ignored.into_iter().collect(),
        submodules,
    }))
}

impl Asked {
    fn changed_by(&self, verb: &Verb) -> Result<Paths, GitError> {
        match verb {
            Verb::Lose { untracked, paths, .. } => self.dirty(*untracked, paths),
            Verb::ResetHard { to } => self.reset_hard(to.as_deref()),
            Verb::ResetMerge { to } => self.reset_merge(to.as_deref()),
            Verb::ResetKeep { to } => {
                to.as_ref().map_or_else(|| Ok(Paths::new()), |to| self.on_the_way_to(to))
            }
            Verb::Checkout { words, after, is_forced, is_merged } => {
                self.checkout(words, after.as_deref(), *is_forced || *is_merged, *is_merged)
            }
            Verb::Switch { to, is_forced } => self.switch(to.as_deref(), *is_forced),
            Verb::Restore { source, is_merged, paths } => self.restore(source.as_deref(), *is_merged, paths),
            Verb::Clean(clean) => self.cleaned(clean),
            Verb::Remove { paths } => {
                Ok(self.tracked(paths)?.into_iter().chain(self.list_of_submodules(paths)?).collect())
            }
            Verb::Move { sources, destination } => self.renamed(sources, destination),
            Verb::Deinit { paths } => self.submodules(paths),
            Verb::Apply(patches) => self.applied(patches),
            Verb::ApplyMails(patches) => self.applied_mails(patches),
            Verb::Merge { with, autostash } => self.merge(with, *autostash),
            Verb::Pick { commits, is_backwards } => {
                let picked = self.picked(commits, *is_backwards)?;
                picked.map_or_else(|| self.everything(), Ok)
            }
            Verb::StashApply { stash, is_branch } => self.stash_apply(stash.as_deref(), *is_branch),
            Verb::Rebase { onto, upstream, branch } => {
                self.rebase(onto.as_deref(), upstream.as_deref(), branch.as_deref())
            }
            Verb::MergeGivenUp => self.merge_given_up(),
            Verb::Series(how) => self.series(*how),
            Verb::Resume => self.begun(),
            Verb::ReadTree { trees, is_reset } => self.read_tree(trees, *is_reset),
            Verb::CheckoutIndex { files } => self.touched_files(files),
            Verb::WorktreeRemove { .. } => {
                Ok(self.tracked(&[])?.into_iter().chain(self.untracked(&[], &[])?).collect())
            }
            Verb::Everything => self.everything(),
        }
    }

    fn everything(&self) -> Result<Paths, GitError> {
        Ok(self.tracked(&[])?.into_iter().chain(self.dirty(false, &[])?).collect())
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
