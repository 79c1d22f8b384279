//! How hooks get into an agent's settings or into git, and out again exactly.
//!
//! Everything is planned first, by reading, and can be shown; [`carry_out`] then does it. Settings belong to the person:
//! what was there stays, byte by byte, and comes back byte by byte.

mod agents;
mod carry_out;
mod command;
mod error;
mod files;
mod git_hooks;
mod json;
mod plugin;
mod record;
mod settings;
mod settings_plan;

use std::fmt;
use std::path::PathBuf;

pub use carry_out::carry_out;
pub use error::InstallError;

use crate::agent::Agent;

/// What hooks are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The settings of an agent.
    Agent(Agent),
    /// The hooks of a git repository.
    Git,
}

/// For whom hooks are put in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// For everybody who works in this project.
    #[default]
    Project,
    /// For this person in this project, in a file that is not committed. Only Claude Code has one.
    Local,
    /// For this person, in all projects.
    User,
}

/// Where to put hooks, and what they run.
#[derive(Debug, Clone)]
pub struct Place {
    /// The top of the project, or with [`Scope::User`] the person's home.
    pub root: PathBuf,
    /// For whom.
    pub scope: Scope,
    /// The `tenure` that hooks shall run: absolute, so that nobody's PATH matters.
    pub program: PathBuf,
    /// A folder of Tenure's own, where originals are kept until they are put back.
    pub backups: PathBuf,
}

/// What would be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In this order. Nothing to do if it is empty.
    pub changes: Vec<Change>,
    /// What is covered, and what the person still has to do.
    pub notes: Vec<String>,
    /// What Tenure writes down for itself before: an interrupted installation can be undone too.
    first: Vec<Change>,
    /// What Tenure forgets after.
    last: Vec<Change>,
}

/// One thing that is done to the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Makes a folder.
    MakeFolder {
        /// Which.
        path: PathBuf,
    },
    /// Writes a file whole, by a file beside it, so that nobody ever reads a half.
    Write {
        /// Which.
        path: PathBuf,
        /// What is in it then.
        content: Vec<u8>,
        /// Whether it can be run, if it is new; else it stays as it is.
        is_program: bool,
        /// What is in it now. If somebody was quicker, nothing is done.
        before: Option<Vec<u8>>,
    },
    /// Gives a file another name, which nobody has.
    Rename {
        /// Its name now.
        from: PathBuf,
        /// Its name then.
        to: PathBuf,
    },
    /// Removes a file.
    Remove {
        /// Which.
        path: PathBuf,
        /// What is in it now.
        before: Vec<u8>,
    },
    /// Removes a folder that we made, if nothing is left in it.
    RemoveFolder {
        /// Which.
        path: PathBuf,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::MakeFolder { path } => write!(formatter, "make the folder {}", path.display()),
            Change::Write { path, before: None, .. } => write!(formatter, "create {}", path.display()),
            Change::Write { path, .. } => write!(formatter, "change {}", path.display()),
            Change::Rename { from, to } => write!(formatter, "rename {} to {}", from.display(), to.display()),
            Change::Remove { path, .. } => write!(formatter, "remove {}", path.display()),
            Change::RemoveFolder { path } => {
                write!(formatter, "remove the folder {} if it is empty", path.display())
            }
        }
    }
}

/// What it takes to have the hooks of `what` in place. Reads, and changes nothing.
///
/// If they are already as they should be, there is nothing to change.
pub fn plan_install(what: What, place: &Place) -> Result<Plan, InstallError> {
    match what {
        What::Agent(Agent::OpenCode) => plugin::plan_install(place),
        What::Agent(agent) => settings_plan::plan_install(agent, place),
        What::Git => git_hooks::plan_install(place),
    }
}

/// What it takes to have them out again: the file as it was, if nobody changed it since; else without what is ours.
pub fn plan_uninstall(what: What, place: &Place) -> Result<Plan, InstallError> {
    match what {
        What::Agent(Agent::OpenCode) => plugin::plan_uninstall(place),
        What::Agent(agent) => settings_plan::plan_uninstall(agent, place),
        What::Git => git_hooks::plan_uninstall(place),
    }
}
