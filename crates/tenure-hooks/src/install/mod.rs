//! Installs hooks into an agent's settings or into git, and removes them exactly.
//!
//! Everything is planned first, by reading, and can be shown; [`apply_plan`] then does it. Settings belong to the user: other
//! content stays, and is restored, byte by byte.

mod agent_settings;
mod apply_plan;
mod configured_shell;
mod git_hooks;
mod hook_entries;
mod install_record;
mod json;
mod plugin;
mod settings_plan;
mod status;
mod user_folders;

use std::path::PathBuf;
use std::str::FromStr;
use std::{fmt, io};

pub use apply_plan::apply_plan;
pub use configured_shell::{ConfiguredShell, configured_shell, is_own_shell};
pub use git_hooks::{GitHook, GitHookStatus, git_hook_status};
pub use status::{InstallStatus, UnreadableSettings, install_status};
use tenure_host::coding_agent::CodingAgent;
use tenure_host::git::GitError;
pub use user_folders::UserFolders;

use crate::interception_coverage::InterceptionCoverage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallTarget {
    Agent(CodingAgent),
    /// The hooks of a git repository.
    Git,
}

impl fmt::Display for InstallTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallTarget::Agent(agent) => agent.fmt(formatter),
            InstallTarget::Git => formatter.write_str("git"),
        }
    }
}

impl FromStr for InstallTarget {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "git" {
            return Ok(InstallTarget::Git);
        }
        name.parse().map(InstallTarget::Agent).map_err(|unknown: String| format!("{unknown}, and git"))
    }
}

/// For whom hooks are put in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InstallScope {
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
pub struct InstallContext {
    /// The top of the project, or with [`InstallScope::User`] the person's home.
    pub root: PathBuf,
    pub scope: InstallScope,
    /// The `tenure` that hooks shall run: absolute, so that nobody's PATH matters.
    pub program: PathBuf,
    /// A folder of Tenure's own, where originals are kept until they are put back.
    pub backups: PathBuf,
    /// The person's own folders: settings in them count in all projects.
    pub user_folders: UserFolders,
    /// The shell that the person has chosen for Claude Code, in the environment (`CLAUDE_CODE_SHELL`).
    pub chosen_shell: Option<PathBuf>,
    /// The shell in which the person works (`SHELL`).
    pub login_shell: Option<PathBuf>,
    /// Why calls cannot be watched on this system, if they cannot: then nobody is given a shell in which nothing would run.
    pub interception_unavailable: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallPlan {
    /// In this order. Nothing to do if it is empty.
    pub changes: Vec<PlannedChange>,
    /// What the person has to know, and still has to do.
    pub notes: Vec<String>,
    /// What is covered by what, for an agent that gets hooks.
    pub coverage: Vec<InterceptionCoverage>,
    /// What Tenure writes down for itself before: an interrupted installation can be undone too.
    record_changes: Vec<PlannedChange>,
    cleanup_changes: Vec<PlannedChange>,
}

/// Who may do what with a file that is new. The umask takes from it as usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    Plain,
    Program,
    /// Only its owner may read it: settings hold secrets, and so do copies of them.
    Private,
}

/// One thing that is done to the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedChange {
    MakeFolder {
        path: PathBuf,
    },
    /// Writes a file whole, by a file beside it, so that nobody ever reads a half.
    Write {
        path: PathBuf,
        content: Vec<u8>,
        /// Who may do what with it, if it is new; else that stays.
        mode: FileMode,
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

impl fmt::Display for PlannedChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlannedChange::MakeFolder { path } => write!(formatter, "make the folder {}", path.display()),
            PlannedChange::Write { path, before: None, .. } => write!(formatter, "create {}", path.display()),
            PlannedChange::Write { path, .. } => write!(formatter, "change {}", path.display()),
            PlannedChange::Rename { from, to } => {
                write!(formatter, "rename {} to {}", from.display(), to.display())
            }
            PlannedChange::Remove { path, .. } => write!(formatter, "remove {}", path.display()),
            PlannedChange::RemoveFolder { path } => {
                write!(formatter, "remove the folder {} if it is empty", path.display())
            }
            PlannedChange::Link { path, target, .. } => {
                write!(formatter, "make {} a link to {}", path.display(), target.display())
            }
        }
    }
}

/// What it takes to have the hooks of `what` in place. Reads, and changes nothing.
///
/// If they are already as they should be, there is nothing to change.
pub fn plan_install(what: InstallTarget, place: &InstallContext) -> Result<InstallPlan, InstallError> {
    match what {
        InstallTarget::Agent(CodingAgent::OpenCode) => plugin::plan_install(place),
        InstallTarget::Agent(agent) => settings_plan::plan_install(agent, place),
        InstallTarget::Git => git_hooks::plan_install(place),
    }
}

/// What it takes to have them out again: the file as it was, if nobody changed it since; else without what is ours.
pub fn plan_uninstall(what: InstallTarget, place: &InstallContext) -> Result<InstallPlan, InstallError> {
    match what {
        InstallTarget::Agent(CodingAgent::OpenCode) => plugin::plan_uninstall(place),
        InstallTarget::Agent(agent) => settings_plan::plan_uninstall(agent, place),
        InstallTarget::Git => git_hooks::plan_uninstall(place),
    }
}

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
    fn io_error(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |disk_error| InstallError::Disk { path, disk_error }
    }
}
