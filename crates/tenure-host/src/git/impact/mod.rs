//! Predicts which files of the working tree a git command would change or lose.
//!
//! It may predict more than really changes, never less. Ignored files need no lease and are left out. Other git processes
//! that git starts (in a submodule, after a fetch, `read-tree --reset -u` after a failed merge) are predicted when they start.

mod checkout_commands;
mod clean;
mod file_lists;
mod merge_commands;
mod patches;
mod repository_context;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use file_lists::Paths;
use repository_context::RepositoryContext;

use super::GitError;
use super::changed_paths::in_batches;
use super::command_line::{GitOperation, parse};

/// What a command of git would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitImpact {
    /// The top of the working tree.
    pub root: PathBuf,
    /// For people: `git stash`.
    pub command: String,
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
/// the program. `environment` is that of the program; of that, what [`is_git_variable`](super::is_git_variable) says counts, and what is not
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
pub fn predict_impact(
    arguments: &[OsString],
    cwd: &Path,
    environment: &[(OsString, OsString)],
) -> Result<Option<GitImpact>, GitError> {
    let Some(line) = parse(arguments) else { return Ok(None) };
    let Some(mut context) = RepositoryContext::new(&line.global, cwd, environment)? else { return Ok(None) };
    if let GitOperation::WorktreeRemove { tree } = &line.operation {
        let Some(folder) = context.linked_worktree(&cwd.join(&line.global.folder), tree)? else {
            return Ok(None);
        };
        let Some(other) = context.for_folder(&folder)? else { return Ok(None) };
        context = other;
    }
    let mut paths = context.with_obstructing_paths(context.operation_impact(&line.operation)?)?;
    let mut ignored = context.ignored_removed_by(&line.operation)?;
    if line.operation.removes_repositories() {
        let (files, inside) = context.expand_nested(paths)?;
        paths = files;
        ignored.extend(inside);
    }
    let recurses =
        line.recurses_into_submodules.map_or_else(|| context.config_bool("submodule.recurse", false), Ok)?;
    let submodules = recurses && !context.submodules(&[])?.is_empty();
    let is_any = !paths.is_empty() || !ignored.is_empty() || submodules;
    Ok(is_any.then(|| GitImpact {
        root: context.root,
        command: line.name,
        paths: paths.into_iter().collect(),
        ignored: ignored.into_iter().collect(),
        submodules,
    }))
}

impl RepositoryContext {
    fn operation_impact(&self, verb: &GitOperation) -> Result<Paths, GitError> {
        match verb {
            GitOperation::Discard { untracked, paths, .. } => self.dirty_paths(*untracked, paths),
            GitOperation::ResetHard { to } => self.reset_hard_impact(to.as_deref()),
            GitOperation::ResetMerge { to } => self.reset_merge_impact(to.as_deref()),
            GitOperation::ResetKeep { to } => {
                to.as_ref().map_or_else(|| Ok(Paths::new()), |to| self.diff_from_head(to))
            }
            GitOperation::Checkout { words, after, is_forced, is_merged } => {
                self.checkout_impact(words, after.as_deref(), *is_forced || *is_merged, *is_merged)
            }
            GitOperation::Switch { to, is_forced } => self.switch_impact(to.as_deref(), *is_forced),
            GitOperation::Restore { source, is_merged, paths } => {
                self.restore_impact(source.as_deref(), *is_merged, paths)
            }
            GitOperation::Clean(clean) => self.clean_impact(clean),
            GitOperation::Remove { paths } => {
                Ok(self.tracked_paths(paths)?.into_iter().chain(self.gitmodules_file(paths)?).collect())
            }
            GitOperation::Move { sources, destination } => self.mv_impact(sources, destination),
            GitOperation::Deinit { paths } => self.submodules(paths),
            GitOperation::Apply(patches) => self.apply_impact(patches),
            GitOperation::ApplyMails(patches) => self.am_impact(patches),
            GitOperation::Merge { with, autostash } => self.merge_impact(with, *autostash),
            GitOperation::Pick { commits, is_backwards } => {
                let picked = self.cherry_pick_impact(commits, *is_backwards)?;
                picked.map_or_else(|| self.everything_impact(), Ok)
            }
            GitOperation::StashApply { stash, is_branch } => {
                self.stash_apply_impact(stash.as_deref(), *is_branch)
            }
            GitOperation::Rebase { onto, upstream, branch } => {
                self.rebase_impact(onto.as_deref(), upstream.as_deref(), branch.as_deref())
            }
            GitOperation::MergeAbort => self.merge_abort_impact(),
            GitOperation::ResumeSequence(how) => self.sequencer_impact(*how),
            GitOperation::ResumeRebaseOrAm => self.resume_impact(),
            GitOperation::ReadTree { trees, is_reset } => self.read_tree_impact(trees, *is_reset),
            GitOperation::CheckoutIndex { files } => self.rewritten_files(files),
            GitOperation::WorktreeRemove { .. } => {
                Ok(self.tracked_paths(&[])?.into_iter().chain(self.untracked_paths(&[], &[])?).collect())
            }
            GitOperation::Everything => self.everything_impact(),
        }
    }

    fn everything_impact(&self) -> Result<Paths, GitError> {
        Ok(self.tracked_paths(&[])?.into_iter().chain(self.dirty_paths(false, &[])?).collect())
    }

    /// With files where a folder has to be, and all that is in folders where a file has to be.
    fn with_obstructing_paths(&self, mut changed: Paths) -> Result<Paths, GitError> {
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
        for part in in_batches(&folders) {
            changed.extend(self.files_below(&part)?);
        }
        changed.extend(files);
        Ok(changed)
    }
}
