//! Parses a git command line into what it does to the working tree, without running git or reading files.
//!
//! Where a word cannot be understood, the result covers more and never less. A subcommand that is not here changes nothing,
//! or changes files through other git processes (aliases, `pull`, `bisect`, `filter-branch`, `submodule update`), or file by
//! file under names that are not known before (patches from standard input).

mod checkout_commands;
mod merge_commands;
mod options;
mod patches;
mod removal_commands;

use std::ffi::OsString;

pub(super) use merge_commands::{SequencerAction, parse_merge_options};
pub(super) use options::GlobalOptions;
pub(super) use patches::PatchArguments;
pub(super) use removal_commands::{CleanOptions, IgnoredFilesMode};

/// What a verb does to many files at once. Paths are as they were written; none of them means the whole tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GitOperation {
    /// Everything that is dirty goes away: `stash`.
    Discard { untracked: bool, ignored: bool, paths: Vec<OsString> },
    /// `reset --hard`.
    ResetHard { to: Option<OsString> },
    /// What is not staged stays: `reset --merge`.
    ResetMerge { to: Option<OsString> },
    /// What is dirty stays: `reset --keep`.
    ResetKeep { to: Option<OsString> },
    /// `checkout`, whose words may be a branch or paths: only the repository knows. After `--`, they are paths.
    Checkout { words: Vec<OsString>, after: Option<Vec<OsString>>, is_forced: bool, is_merged: bool },
    /// `switch`, and `checkout` that makes a branch.
    Switch { to: Option<OsString>, is_forced: bool },
    /// `restore`.
    Restore { source: Option<OsString>, is_merged: bool, paths: Vec<OsString> },
    /// Untracked files go away: `clean`.
    Clean(CleanOptions),
    /// Tracked files go away: `rm`.
    Remove { paths: Vec<OsString> },
    /// `mv`. These are names and no patterns.
    Move { sources: Vec<OsString>, destination: OsString },
    /// Submodules go away: `submodule deinit`.
    Deinit { paths: Vec<OsString> },
    /// `apply`.
    Apply(PatchArguments),
    /// `am`.
    ApplyMails(PatchArguments),
    /// Without a name, what the branch follows.
    Merge { with: Vec<OsString>, autostash: Option<bool> },
    /// `cherry-pick` and `revert`.
    Pick { commits: Vec<OsString>, is_backwards: bool },
    /// `stash pop`, `stash apply`, `stash branch`.
    StashApply { stash: Option<OsString>, is_branch: bool },
    /// Without an upstream, what the branch follows.
    Rebase { onto: Option<OsString>, upstream: Option<OsString>, branch: Option<OsString> },
    /// `merge --abort`.
    MergeAbort,
    /// `cherry-pick` and `revert` that were begun.
    ResumeSequence(SequencerAction),
    /// A rebase or patches that were begun go on or are given up: `--continue`, `--skip`, `--abort`.
    ResumeRebaseOrAm,
    /// `read-tree -u`.
    ReadTree { trees: Vec<OsString>, is_reset: bool },
    /// `checkout-index -f`. These are names and no patterns.
    CheckoutIndex { files: Vec<OsString> },
    /// Every tracked file may go or change: `sparse-checkout`, `switch --orphan`, `rebase --root`, a merge into a folder.
    Everything,
    /// Another working tree goes away as a whole.
    WorktreeRemove { tree: OsString },
}

impl GitOperation {
    /// Whether it takes whole repositories inside the tree away by itself.
    pub fn removes_repositories(&self) -> bool {
        match self {
            Self::Clean(clean) => clean.repositories,
            Self::Remove { .. } | Self::Deinit { .. } | Self::WorktreeRemove { .. } => true,
            _ => false,
        }
    }
}

/// Whether this command line may change many files of a working tree at once.
pub fn changes_many_files(arguments: &[OsString]) -> bool {
    parse(arguments).is_some()
}

/// A command line that changes the working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitCommandLine {
    pub global: GlobalOptions,
    /// For people: `git reset --hard`.
    pub name: String,
    pub operation: GitOperation,
    /// Whether it goes on into submodules; nothing if that depends on what is set.
    pub recurses_into_submodules: Option<bool>,
}

/// What this command line does to the working tree; nothing if it leaves it alone.
pub(super) fn parse(arguments: &[OsString]) -> Option<GitCommandLine> {
    let (global, verb, rest) = options::split_global_options(arguments)?;
    let first = rest.first().map(|word| word.as_encoded_bytes());
    // These only explain.
    if first == Some(b"--help") || (rest.len() == 1 && first == Some(b"-h")) {
        return None;
    }
    let does = match verb.as_str() {
        "stash" => checkout_commands::parse_stash(rest),
        "reset" => checkout_commands::parse_reset(rest),
        "checkout" => checkout_commands::parse_checkout(rest),
        "switch" => checkout_commands::parse_switch(rest),
        "restore" => checkout_commands::parse_restore(rest),
        "clean" => removal_commands::parse_clean(rest),
        "mv" => removal_commands::parse_mv(rest),
        "rm" => removal_commands::parse_rm(rest),
        "read-tree" => checkout_commands::parse_read_tree(rest),
        "checkout-index" => checkout_commands::parse_checkout_index(rest),
        "sparse-checkout" => removal_commands::parse_sparse_checkout(rest),
        "worktree" => removal_commands::parse_worktree(rest),
        "submodule" | "submodule--helper" => removal_commands::parse_submodule(rest),
        "merge" => merge_commands::parse_merge(rest),
        "cherry-pick" => merge_commands::parse_cherry_pick(rest, false),
        "revert" => merge_commands::parse_cherry_pick(rest, true),
        "rebase" => merge_commands::parse_rebase(rest),
        "apply" => patches::parse_apply(rest),
        "am" => patches::parse_am(rest),
        // What merges are made of, where their strategy is not git's own.
        "merge-recursive"
        | "merge-recursive-ours"
        | "merge-recursive-theirs"
        | "merge-subtree"
        | "merge-ort"
        | "merge-ort-ours"
        | "merge-ort-theirs" => Some(GitOperation::Everything),
        _ => None,
    }?;
    let name = match (&does, first.map(String::from_utf8_lossy)) {
        (GitOperation::ResetHard { .. }, _) => "git reset --hard".to_owned(),
        (GitOperation::ResetMerge { .. }, _) => "git reset --merge".to_owned(),
        (GitOperation::ResetKeep { .. }, _) => "git reset --keep".to_owned(),
        (GitOperation::StashApply { .. } | GitOperation::WorktreeRemove { .. }, Some(word)) => {
            format!("git {verb} {word}")
        }
        (_, Some(word)) if matches!(verb.as_str(), "sparse-checkout" | "submodule") => {
            format!("git {verb} {word}")
        }
        _ => format!("git {verb}"),
    };
    let recurses = checkout_commands::recurses_into_submodules(&verb, rest);
    Some(GitCommandLine { global, name, operation: does, recurses_into_submodules: recurses })
}

#[cfg(test)]
mod tests;
