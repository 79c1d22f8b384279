//! How hooks get into an agent's settings or into git, and out again exactly.
//!
//! Everything is planned first, by reading, and can be shown; [`carry_out`] then does it. Settings belong to the person:
//! what was there stays, byte by byte, and comes back byte by byte.

mod agents;
mod carry_out;
mod chosen;
mod command;
mod error;
mod git_hooks;
mod installed;
mod json;
mod person;
mod plugin;
mod record;
mod settings;
mod settings_plan;
mod shell;
mod variable;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use carry_out::carry_out;
pub use chosen::{Choice, choice};
pub use error::InstallError;
pub use git_hooks::{GitHook, GitHooks, git_hooks};
pub use installed::{Installed, Unreadable, installed};
pub use person::Person;
pub use shell::is_ours as is_own_shell;

use crate::agent::Agent;
use crate::coverage::Covered;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Agent(Agent),
    /// The hooks of a git repository.
    Git,
}

impl fmt::Display for What {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Agent(agent) => agent.fmt(formatter),
            What::Git => formatter.write_str("git"),
        }
    }
}

impl FromStr for What {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "git" {
            return Ok(What::Git);
        }
        name.parse().map(What::Agent).map_err(|unknown: String| format!("{unknown}, and git"))
    }
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
    pub scope: Scope,
    /// The `tenure` that hooks shall run: absolute, so that nobody's PATH matters.
    pub program: PathBuf,
    /// A folder of Tenure's own, where originals are kept until they are put back.
    pub backups: PathBuf,
    /// The person's own folders: settings in them count in all projects.
    pub person: Person,
    /// The shell that the person has chosen for Claude Code, in the environment (`CLAUDE_CODE_SHELL`).
    pub chosen_shell: Option<PathBuf>,
    /// The shell in which the person works (`SHELL`).
    pub login_shell: Option<PathBuf>,
    /// Why calls cannot be watched on this system, if they cannot: then nobody is given a shell in which nothing would run.
    pub unwatchable: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In this order. Nothing to do if it is empty.
    pub changes: Vec<Change>,
    /// What the person has to know, and still has to do.
    pub notes: Vec<String>,
    /// What is covered by what, for an agent that gets hooks.
    pub coverage: Vec<Covered>,
    /// What Tenure writes down for itself before: an interrupted installation can be undone too.
    first: Vec<Change>,
    last: Vec<Change>,
}

/// Who may do what with a file that is new. The umask takes from it as usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Plain,
    Program,
    /// Only its owner may read it: settings hold secrets, and so do copies of them.
    Private,
}

/// One thing that is done to the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    MakeFolder {
        path: PathBuf,
    },
    /// Writes a file whole, by a file beside it, so that nobody ever reads a half.
    Write {
        path: PathBuf,
        content: Vec<u8>,
        /// Who may do what with it, if it is new; else that stays.
        mode: Mode,
        /// What is in it now. If somebody was quicker, nothing is done.
        before: Option<Vec<u8>>,
    },
    /// Gives a file another name, which nobody has.
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
        before: Vec<u8>,
    },
    /// Removes a folder that we made, if nothing is left in it.
    RemoveFolder {
        path: PathBuf,
    },
    /// Makes a link, or has it lead elsewhere.
    Link {
        path: PathBuf,
        target: PathBuf,
        /// Where it leads now. If somebody was quicker, nothing is done.
        before: Option<PathBuf>,
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
            Change::Link { path, target, .. } => {
                write!(formatter, "make {} a link to {}", path.display(), target.display())
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
