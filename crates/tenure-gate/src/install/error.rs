//! Why hooks were not put in place.

use std::io;
use std::path::PathBuf;

use crate::git::GitError;

/// Why nothing was done. Errors of a plan leave everything as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The settings cannot be read, so they cannot be added to.
    #[error("{} is not JSON (line {line}, column {column}); nothing was changed: mend it there, and try again", path.display())]
    NotJson { path: PathBuf, line: usize, column: usize },
    /// The settings have comments. Some agents read them all the same.
    #[error(
        "{} cannot be read: it has comments (line {line}), and Tenure changes only what is plain JSON; nothing was changed: take \
         the comments out, and try again", path.display()
    )]
    Comments {
        path: PathBuf,
        /// Where the first of them is.
        line: usize,
    },
    /// The settings are JSON, but not of the shape that the agent reads.
    #[error("{}: {what}, which is not what the agent reads; nothing was changed: mend it, and try again", path.display())]
    UnexpectedShape { path: PathBuf, what: String },
    /// A file of that name is there, and is not ours.
    #[error("{} is there already and is not from Tenure; nothing was changed: move it away, and try again", path.display())]
    Taken { path: PathBuf },
    /// Somebody changed a file between plan and deed.
    #[error("{} was changed meanwhile; nothing was done to it: try again", path.display())]
    Changed { path: PathBuf },
    /// The program cannot be named in a settings file.
    #[error(
        "the program's path must be absolute, UTF-8 and without control characters; install `tenure` elsewhere"
    )]
    Program,
    /// What Tenure keeps for itself cannot be named in a settings file.
    #[error(
        "{} cannot be named in settings: it must be absolute, UTF-8 and without control characters; nothing was changed: set \
         XDG_STATE_HOME to another folder, and try again", path.display()
    )]
    State { path: PathBuf },
    /// Only Claude Code has settings of that kind.
    #[error("{agent} has no settings for one person in one project; install for the project or for the user")]
    NoLocal {
        /// Who has none.
        agent: &'static str,
    },
    /// Nobody says where the person's settings are.
    #[error("HOME does not say where your settings are; set it")]
    NoHome,
    /// Git looks for hooks where there can be none.
    #[error("git looks for hooks in {}, which is no folder; set `core.hooksPath` to one, or unset it", path.display())]
    NoHooksFolder { path: PathBuf },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{}: {disk_error}; see whether it can be read and written, and try again", path.display())]
    Disk {
        path: PathBuf,
        /// What it said. It is in the text, and so no source: else it would be told twice.
        disk_error: io::Error,
    },
    /// Only a part was done.
    #[error("{error}. Before that, this was done: {}", done.join("; "))]
    PartiallyApplied { done: Vec<String>, error: Box<InstallError> },
}

impl InstallError {
    /// The same, where this was done before.
    #[must_use]
    pub fn with_completed_steps(self, done: &[String]) -> Self {
        match self {
            error if done.is_empty() => error,
            InstallError::PartiallyApplied { done: more, error } => {
                InstallError::PartiallyApplied { done: [done, &more].concat(), error }
            }
            error => InstallError::PartiallyApplied { done: done.to_vec(), error: Box::new(error) },
        }
    }

    /// What the disk said about this file.
    pub(super) fn io_error(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |disk_error| InstallError::Disk { path, disk_error }
    }
}
