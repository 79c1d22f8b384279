//! How hooks get into an agent's settings or into git, and out again exactly.
//!
//! Everything is planned first, by reading, and can be shown; [`apply_plan`] then does it. Settings belong to the person:
//! what was there stays, byte by byte, and comes back byte by byte.

mod agent_settings;
mod apply_plan;
mod configured_shell;
mod error;
mod git_hooks;
mod hook_command;
mod hook_entries;
mod install_record;
mod json;
mod plugin;
mod settings_plan;
mod shell_variable;
mod status;
mod tenure_bash;
mod user_folders;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use apply_plan::apply_plan;
pub use configured_shell::{ConfiguredShell, configured_shell};
pub use error::InstallError;
pub use git_hooks::{GitHook, GitHookStatus, git_hook_status};
pub use status::{InstallStatus, UnreadableSettings, install_status};
pub use tenure_bash::is_own_shell;
pub use user_folders::UserFolders;

use crate::coding_agent::CodingAgent;
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
