//! `tenure install` and `tenure uninstall`.

mod person;
mod report;

use std::path::PathBuf;

use clap::Args;
use tenure_gate::agent::Agent;
use tenure_gate::install::{InstallError, Place, Plan, Scope, What, carry_out, plan_install, plan_uninstall};
use tenure_gate::paths::work_tree_of;

use crate::configuration::{Folders, variable};
use crate::exit;
use crate::failure::Failure;

/// Puts Tenure's hooks into the settings of a coding agent, so that no two agents change one file at once.
///
/// From then on the agent's edits are leased by themselves; nobody types anything. What is in the settings stays, and
/// `tenure uninstall` puts the file back byte for byte. The hooks of git come along (`tenure install git` puts in those
/// alone): what is committed is let go of at once.
///
/// Claude Code and OpenCode also get a shell, `tenure-bash`, in which commands ask before they change a file; one that you
/// chose yourself stays. The other agents' commands are watched if the agent is started with `tenure guard -- AGENT`.
///
/// It is for the project that we are in, and so for everybody who works in it, unless --user or --local says otherwise. It
/// says what it changed, what is left to do, and what is covered by what. Only for people: it is refused to whatever an agent
/// started.
///
/// Example: tenure install claude
/// Example: tenure install codex --dry-run
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Install {
    #[command(flatten)]
    target: Target,
    /// Print one JSON value instead of text
    #[arg(long)]
    json: bool,
}

/// Takes Tenure's hooks out of the settings of a coding agent, or out of git.
///
/// A settings file that nobody changed since is put back byte for byte; else what is Tenure's is taken out, and the rest
/// stays. The hooks of git stay until `tenure uninstall git`: other agents may need them. Only for people: it is refused to
/// whatever an agent started.
///
/// Example: tenure uninstall claude
#[derive(Debug, Args)]
pub struct Uninstall {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
struct Target {
    /// Which agent (claude, codex, gemini, cursor, opencode), or `git`
    #[arg(value_name = "AGENT|git", value_parser = what)]
    what: What,
    /// For you, in all projects
    #[arg(long, conflicts_with = "local")]
    user: bool,
    /// For you, in this project alone; only Claude Code has such settings
    #[arg(long)]
    local: bool,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

impl Install {
    /// Puts them in.
    pub fn run(self) -> Result<(), Failure> {
        let Self { target, json } = self;
        let place = target.place()?;
        let mut plans = vec![plan_install(target.what, &place)?];
        if matches!(target.what, What::Agent(_)) {
            plans.extend(git_beside(&place)?);
        }
        target.carry_out(&plans)?;
        if json {
            return Ok(report::write_json(&plans, target.dry_run)?);
        }
        report::write(&plans, target.dry_run, "the hooks are in place already")?;
        match target.what {
            What::Agent(agent) => Ok(report::write_coverage(agent, &plans)?),
            What::Git => Ok(()),
        }
    }
}

impl Uninstall {
    /// Takes them out.
    pub fn run(self) -> Result<(), Failure> {
        let Self { target } = self;
        let plans = [plan_uninstall(target.what, &target.place()?)?];
        target.carry_out(&plans)?;
        Ok(report::write(&plans, target.dry_run, "there are no hooks of Tenure")?)
    }
}

impl Target {
    fn place(&self) -> Result<Place, Failure> {
        if self.what == What::Git && (self.user || self.local) {
            let what = "git has its hooks in each repository; leave out --user and --local";
            return Err(Failure::said(exit::USAGE, what));
        }
        let scope = match self {
            Target { user: true, .. } => Scope::User,
            Target { local: true, .. } => Scope::Local,
            _ => Scope::Project,
        };
        let root = if scope == Scope::User { home()? } else { project()? };
        let program = std::env::current_exe();
        let program = program.map_err(|error| {
            Failure::new(exit::UNAVAILABLE, "the program's own path cannot be seen", &error)
        })?;
        let chosen_shell = variable("CLAUDE_CODE_SHELL").map(PathBuf::from);
        Ok(Place { root, scope, program, backups: backups()?, home: home().ok(), chosen_shell })
    }

    /// Does all of it, unless only to say so was asked for.
    fn carry_out(&self, plans: &[Plan]) -> Result<(), Failure> {
        let is_empty = plans.iter().all(|plan| plan.changes.is_empty());
        if self.dry_run || is_empty {
            return Ok(());
        }
        person::required()?;
        plans.iter().try_for_each(carry_out).map_err(Failure::from)
    }
}

/// The hooks of git, where we are in a repository: a commit lets go of what was leased.
fn git_beside(place: &Place) -> Result<Option<Plan>, Failure> {
    let Ok(root) = project() else { return Ok(None) };
    let place = Place { root, scope: Scope::Project, ..place.clone() };
    plan_install(What::Git, &place).map(Some).map_err(Failure::from)
}

/// The working tree that we are in.
fn project() -> Result<PathBuf, Failure> {
    let found = std::env::current_dir().ok().and_then(|folder| work_tree_of(&folder).ok().flatten());
    found.map(|tree| tree.root).ok_or_else(|| {
        Failure::said(exit::NO, "we are in no working tree of git; go into the project, or say --user")
    })
}

/// The person's home.
pub fn home() -> Result<PathBuf, Failure> {
    let home = variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    home.ok_or_else(|| {
        Failure::said(exit::CONFIGURATION, "HOME does not say where your settings are; set it")
    })
}

/// Where originals are kept until they are put back.
pub fn backups() -> Result<PathBuf, Failure> {
    let folders = Folders::new(variable);
    let state = folders.state("what is needed to undo this", "set HOME");
    let state = state.map_err(|error| Failure::said(exit::CONFIGURATION, &error.to_string()))?;
    Ok(state.join("tenure-installed"))
}

fn what(name: &str) -> Result<What, String> {
    if name == "git" {
        return Ok(What::Git);
    }
    name.parse::<Agent>().map(What::Agent).map_err(|error| format!("{error}, git"))
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        Self::new(exit::NO, "the hooks stay as they are", &error)
    }
}
