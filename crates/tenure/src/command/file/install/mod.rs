//! `tenure install` and `tenure uninstall`.

mod report;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use tenure_api::FileSessionView;
use tenure_client::Error;
use tenure_core::kernel::ProcessId;
use tenure_guard::seccomp_probe;
use tenure_hooks::install::{
    InstallContext, InstallError, InstallPlan, InstallScope, InstallTarget, UserFolders, apply_plan,
    install_status, plan_install, plan_uninstall,
};
use tenure_host::coding_agent::CodingAgent;
use tenure_host::paths::work_tree_of;
use tenure_host::process::ancestors;

use crate::client::with_local_client;
use crate::config::{Folders, variable};
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
        require_human()?;
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

/// This program, also where its name is another one's by now.
const OWN: &str = "/proc/self/exe";

/// What is the same for all places.
#[derive(Debug, Clone)]
pub struct InstallEnvironment {
    pub person: UserFolders,
    /// Why calls cannot be watched here; nothing, if they can.
    pub unwatchable: Option<String>,
    program: PathBuf,
    backups: PathBuf,
}

impl InstallEnvironment {
    pub fn detect() -> Result<Self, Failure> {
        let folders = Folders::new(variable);
        let state = folders.state("what Tenure has installed", "set HOME").map_err(|_| {
            let what =
                "neither XDG_STATE_HOME nor HOME says where Tenure writes down what it installs; set HOME";
            Failure::from_message(exit::CONFIGURATION, what)
        })?;
        Ok(Self {
            person: UserFolders::new(variable),
            unwatchable: seccomp_probe::seccomp_unavailable_reason(),
            program: program()?,
            backups: state.join("tenure-installed"),
        })
    }

    pub fn location(&self, root: PathBuf, scope: InstallScope) -> InstallContext {
        InstallContext {
            root,
            scope,
            program: self.program.clone(),
            backups: self.backups.clone(),
            user_folders: self.person.clone(),
            chosen_shell: variable("CLAUDE_CODE_SHELL").map(PathBuf::from),
            login_shell: variable("SHELL").map(PathBuf::from).filter(|shell| !shell.as_os_str().is_empty()),
            interception_unavailable: self.unwatchable.clone(),
        }
    }
}

/// The path that hooks shall name.
///
/// It is the one by which we were called, if that leads here: a link is there so that it can lead to another version later, and
/// hooks that name the version itself would be gone with it.
fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::new(exit::UNAVAILABLE, "the program's own path cannot be seen", &error))?;
    let called = std::env::args_os().next().and_then(|name| called(&name, variable("PATH")));
    Ok(called.filter(|path| is_one_file(path, Path::new(OWN))).unwrap_or(own))
}

/// The path that this name means, if it is absolute or found in the PATH.
fn called(name: &OsString, folders: Option<OsString>) -> Option<PathBuf> {
    let name = Path::new(name);
    if name.is_absolute() {
        return Some(name.to_owned());
    }
    if name.components().count() != 1 {
        return None;
    }
    let folders = folders.unwrap_or_default();
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(name));
    paths.find(|path| path.is_file()).filter(|path| path.is_absolute())
}

fn is_one_file(one: &Path, other: &Path) -> bool {
    let number = |path| fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    number(one).is_some_and(|found| Some(found) == number(other))
}

/// Refuses whatever was started by an agent that the server knows: one that was denied a file would open the gate by itself.
///
/// Where no server runs, nobody is known, and nobody is denied anything either.
pub fn require_human() -> Result<(), Failure> {
    let sessions = with_local_client(async |client| match client.files().await {
        Ok(files) => Ok(files.sessions),
        Err(Error::Unreachable { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    })?;
    if is_below(&ancestors(std::process::id()), &sessions) {
        let what = "this was asked by a process of a coding agent; only a person may change Tenure's hooks: run the command in \
                    a terminal of your own";
        return Err(Failure::from_message(exit::DENIED, what));
    }
    Ok(())
}

/// Sessions say the number of their process alone. It is alive, and so are all above us: nobody else can have it.
fn is_below(above: &[ProcessId], sessions: &[FileSessionView]) -> bool {
    let mut alive = sessions.iter().map(|session| &session.owner).filter(|owner| owner.alive);
    alive.any(|owner| above.iter().any(|process| process.pid == owner.pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::file::files::view::tests::sample_owner;

    #[test]
    fn program_name_is_resolved_through_path_like_in_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("one/tenure")).unwrap();
        fs::create_dir(path("two")).unwrap();
        fs::write(path("two/tenure"), "").unwrap();
        let folders = std::env::join_paths([path("none"), path("one"), path("two")]).unwrap();
        let found = |name: &str| called(&name.into(), Some(folders.clone()));
        assert_eq!(found("tenure"), Some(path("two/tenure")), "a folder is no program");
        assert_eq!(found("/opt/tenure"), Some("/opt/tenure".into()));
        assert_eq!((found("two/tenure"), found("./tenure"), found("other")), (None, None, None));
        std::os::unix::fs::symlink(path("two/tenure"), path("link")).unwrap();
        assert!(
            is_one_file(&path("link"), &path("two/tenure")) && !is_one_file(&path("none"), &path("none"))
        );
    }

    #[test]
    fn descendant_of_a_live_agent_session_is_not_human() {
        let above = ancestors(std::process::id());
        let parent = above.first().unwrap().pid;
        let session = |pid, alive| FileSessionView {
            owner: tenure_api::FileOwner { pid, alive, ..sample_owner() },
            parent: None,
            known_ms: 0,
            idle_ms: 0,
            files: 0,
        };
        assert!(is_below(&above, &[session(parent, true)]));
        assert!(!is_below(&above, &[session(parent, false)]), "a dead one started nobody who is here");
        assert!(!is_below(&above, &[session(std::process::id(), true)]), "itself is not above itself");
    }
}
