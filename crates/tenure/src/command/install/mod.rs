//! `tenure install` and `tenure uninstall`.

mod admin;
mod env;
mod report;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use tenure_gate::coding_agent::CodingAgent;
use tenure_gate::install::{
    InstallContext, InstallError, InstallPlan, InstallScope, InstallTarget, apply_plan, install_status,
    plan_install, plan_uninstall,
};
use tenure_gate::paths::work_tree_of;

pub use self::env::InstallEnvironment;
use crate::exit;
use crate::failure::Failure;
use crate::output::Format;

/// Puts Tenure's hooks into the settings of a coding agent, so that no two agents change one file at once.
///
/// From then on the agent's edits are leased by themselves; nobody types anything. What is in the settings stays, and
/// `tenure uninstall` puts the file back byte for byte. The hooks of git come along (`tenure install git` puts in those
/// alone): what is committed is let go of at once.
///
/// Claude Code and OpenCode also get a shell, `tenure-bash`, in which commands ask before they change a file; one that you
/// chose yourself stays, and where the system does not let calls be watched, it is left out. The other agents' commands are
/// watched if the agent is started with `tenure guard -- AGENT`.
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
    target: TargetArguments,
    #[command(flatten)]
    format: Format,
}

/// Takes Tenure's hooks out of the settings of a coding agent, or out of git.
///
/// A settings file that nobody changed since is put back byte for byte; else what is Tenure's is taken out, and the rest
/// stays. The hooks of git stay until `tenure uninstall git`: other agents may need them. The link `tenure-bash` stays too:
/// settings of another clone or working tree may name it, and without it Claude Code would run their commands in the plain
/// shell, without a word. By itself it does nothing. Only for people: it is refused to whatever an agent started.
///
/// Example: tenure uninstall claude
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Uninstall {
    #[command(flatten)]
    target: TargetArguments,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
struct TargetArguments {
    /// Which agent, or `git`
    #[arg(value_name = "AGENT|git", value_parser = names().try_map(|name: String| name.parse::<InstallTarget>()))]
    what: InstallTarget,
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
        let Self { target, format } = self;
        let place = target.place()?;
        let mut plans = vec![plan_install(target.what, &place)?];
        if matches!(target.what, InstallTarget::Agent(_)) {
            plans.extend(plan_git_hooks(&place));
        }
        let git = if plans.len() > 1 { ", `tenure uninstall git` the hooks of git" } else { "" };
        target.carry_out(&plans, &format!("`{}` takes it out again{git}.", target.uninstall_command()))?;
        if format.json {
            return Ok(report::write_plans_json(&plans, target.dry_run)?);
        }
        report::write(&plans, target.dry_run, "the hooks are in place already")?;
        match target.what {
            InstallTarget::Agent(agent) => Ok(report::write_coverage(agent, &plans)?),
            InstallTarget::Git => Ok(()),
        }
    }
}

impl Uninstall {
    /// Takes them out.
    pub fn run(self) -> Result<(), Failure> {
        let Self { target, format } = self;
        let place = target.place()?;
        let plans = [plan_uninstall(target.what, &place)?];
        target.carry_out(&plans, &format!("`{}` goes on with it.", target.uninstall_command()))?;
        if format.json {
            return Ok(report::write_plans_json(&plans, target.dry_run)?);
        }
        let elsewhere = target.elsewhere(&place);
        Ok(report::write(&plans, target.dry_run, &format!("there are no hooks of Tenure{elsewhere}"))?)
    }
}

impl TargetArguments {
    fn scope(&self) -> InstallScope {
        match self {
            TargetArguments { user: true, .. } => InstallScope::User,
            TargetArguments { local: true, .. } => InstallScope::Local,
            _ => InstallScope::Project,
        }
    }

    fn place(&self) -> Result<InstallContext, Failure> {
        if self.what == InstallTarget::Git && (self.user || self.local) {
            let what = "git has its hooks in each repository; leave out --user and --local";
            return Err(Failure::from_message(exit::USAGE, what));
        }
        let surroundings = InstallEnvironment::detect()?;
        let scope = self.scope();
        let home = || surroundings.person.home.clone().ok_or(InstallError::NoHome);
        let root = if scope == InstallScope::User { home()? } else { project()? };
        Ok(surroundings.location(root, scope))
    }

    /// Does all of it, unless only to say so was asked for. Where only a part could be done, this helps.
    fn carry_out(&self, plans: &[InstallPlan], help: &str) -> Result<(), Failure> {
        let is_empty = plans.iter().all(|plan| plan.changes.is_empty());
        if self.dry_run || is_empty {
            return Ok(());
        }
        admin::require_human()?;
        let mut done = Vec::new();
        for plan in plans {
            apply_plan(plan).map_err(|error| match error.with_completed_steps(&done) {
                error @ InstallError::PartiallyApplied { .. } => {
                    Failure::new(exit::NO, "only a part was done", &error).with_hint(help)
                }
                error => error.into(),
            })?;
            done.extend(plan.changes.iter().map(ToString::to_string));
        }
        Ok(())
    }

    /// The command that takes out what is installed there.
    fn uninstall_command(&self) -> String {
        let scope = match self.scope() {
            InstallScope::Project => "",
            InstallScope::Local => " --local",
            InstallScope::User => " --user",
        };
        format!("tenure uninstall {}{scope}", self.what)
    }

    /// Where else this agent has hooks of ours, with what to do about them.
    fn elsewhere(&self, place: &InstallContext) -> String {
        let InstallTarget::Agent(agent) = self.what else { return String::new() };
        let has = |scope: InstallScope| {
            let place = InstallContext { scope, ..place.clone() };
            scope != self.scope()
                && install_status(agent, &place).is_ok_and(|found| !found.programs.is_empty())
        };
        if self.scope() == InstallScope::User {
            return " in your user settings".to_owned();
        }
        match (has(InstallScope::User), has(InstallScope::Local)) {
            (true, _) => " in this project; your user settings have them: add --user".to_owned(),
            (_, true) => {
                " in the project's settings; your own for this project have them: add --local".to_owned()
            }
            _ => " in this project".to_owned(),
        }
    }
}

/// The hooks of git, where we are in a repository: a commit lets go of what was leased. The agent's are worth having without.
fn plan_git_hooks(place: &InstallContext) -> Option<InstallPlan> {
    let place = InstallContext { root: project().ok()?, scope: InstallScope::Project, ..place.clone() };
    Some(plan_install(InstallTarget::Git, &place).unwrap_or_else(|error| {
        let mut plan = InstallPlan::default();
        plan.notes.push(format!(
            "The hooks of git are not in place: {error}. Until they are, files are let go of 30 s after the agent's turn, and not \
             at the commit. `tenure install git` tries it again."
        ));
        plan
    }))
}

/// The working tree that we are in.
fn project() -> Result<PathBuf, Failure> {
    let found = std::env::current_dir().ok().and_then(|folder| work_tree_of(&folder).ok().flatten());
    found.map(|tree| tree.root).ok_or_else(|| {
        Failure::from_message(
            exit::NO,
            "we are in no working tree of git; go into the project, or say --user",
        )
    })
}

/// What can be installed.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(CodingAgent::ALL.map(CodingAgent::as_str).into_iter().chain(["git"]))
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        Self::new(exit::NO, "the hooks stay as they are", &error)
    }
}
