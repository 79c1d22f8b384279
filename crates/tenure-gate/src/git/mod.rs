//! What git knows, by running the real `git` and only ever reading.
//!
//! Tenure never adds, commits, stashes or checks out: the agent alone does. `run` is the one place that starts a
//! process, and lets only questions through that cannot write (`reading`).

mod changes;
mod child;
mod ignored;
mod moved;
mod overwritten;
mod run;
mod told;
mod verbs;

pub use changes::{committed_paths, dirty, head_content, staged_paths, staged_paths_in};
pub use ignored::ignored;
pub use moved::{Moved, in_the_middle_of, moved_branches};
pub use overwritten::{Overwritten, overwritten};
pub use told::{HooksFolder, hooks_folder, tells_git};
pub use verbs::changes_many;

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
        "`git {subcommand}` did not answer ({said}); run it by hand in this folder, and see what it needs"
    )]
    Failed {
        subcommand: &'static str,
        /// What git said, cut to one line.
        said: String,
    },
    /// Git took longer than its limit and was ended.
    #[error(
        "`git {subcommand}` took longer than {seconds} s and was ended; see whether the disk is busy or a lock is held"
    )]
    TooSlow { subcommand: &'static str, seconds: u64 },
    /// Git said more than anybody wants to hold in memory. A part of an answer would be a wrong answer.
    #[error(
        "`git {subcommand}` answered with more than {most} bytes, which is not looked at; do it in smaller parts"
    )]
    TooMuch {
        subcommand: &'static str,
        /// How much would have been read.
        most: usize,
    },
    /// A subcommand or an option that could write. This is a mistake in Tenure.
    #[error("`git {0}` could write, so it was not run; please report this")]
    NotForReading(&'static str),
}
