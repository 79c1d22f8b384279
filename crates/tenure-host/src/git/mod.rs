//! Queries git by running the real `git`, which only ever reads.
//!
//! Tenure never adds, commits, stashes or checks out: only the agent does. `query` is the one module that starts a process,
//! and admits only subcommands that cannot write (`is_read_only_subcommand` in `changed_paths`).

mod changed_paths;
mod command_line;
mod env;
mod impact;
mod query;
mod reference_updates;

pub use changed_paths::{
    committed_paths, dirty_paths, head_content, ignored_paths, staged_paths, staged_paths_in,
};
pub use command_line::changes_many_files;
pub use env::{HooksFolder, hooks_folder, is_git_variable};
pub use impact::{GitImpact, predict_impact};
pub use reference_updates::{ReferenceUpdate, branch_updates, operation_in_progress};

/// Why git could not be asked, or did not answer. The variants differ by what the caller can do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no git. Whoever needs to know what was committed cannot; everything else goes on.
    #[error(
        "there is no `git` in PATH, so nobody can say what was committed; install git, or put it into PATH"
    )]
    Missing,
    /// The folder belongs to no repository.
    #[error("this folder is in no git repository; go into a working tree, or run `git init`")]
    NotARepository,
    /// The repository has no working tree, so there is no file to lease.
    #[error("this repository is bare, so it has no files to edit; use a clone or a linked worktree of it")]
    Bare,
    #[error(
        "`git {subcommand}` did not answer ({message}); run it by hand in this folder, and see what it needs"
    )]
    Failed {
        subcommand: &'static str,
        /// What git said, cut to one line.
        message: String,
    },
    /// Git took longer than its limit and was ended.
    #[error(
        "`git {subcommand}` took longer than {seconds} s and was ended; see whether the disk is busy or a lock is held"
    )]
    TimedOut { subcommand: &'static str, seconds: u64 },
    /// Git said more than anybody wants to hold in memory. A part of an answer would be a wrong answer.
    #[error(
        "`git {subcommand}` answered with more than {max_bytes} bytes, which is not looked at; do it in smaller parts"
    )]
    OutputTooLarge {
        subcommand: &'static str,
        /// How much would have been read.
        max_bytes: usize,
    },
    /// A subcommand or an option that could write. This is a mistake in Tenure.
    #[error("`git {0}` could write, so it was not run; please report this")]
    NotReadOnly(&'static str),
}
