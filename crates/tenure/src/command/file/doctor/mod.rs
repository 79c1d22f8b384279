//! `tenure doctor`.
//!
//! ```text
//! check         findings, and how they are shown
//! canary        files and sessions of the doctor
//! fake_agent    a process with the name of an agent
//! invoke        runs hooks as an agent does, and reads their responses
//! server        check of this machine's server
//! agent_hooks   checks of the hooks of an agent, and of git
//! codex_trust   check whether Codex trusts the hooks
//! gemini_trust  check whether Gemini CLI trusts the folder
//! shell         check of an agent's shell
//! guard_checks  checks of the guard, and of the audit's watches
//! ```

mod agent_hooks;
mod canary;
mod check;
mod codex_trust;
mod fake_agent;
mod gemini_trust;
mod guard_checks;
mod invoke;
mod server;
mod shell;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use canary::Canaries;
use clap::Args;
use tenure_guard::end_all_descendants;
use tenure_hooks::install::{InstallContext, InstallScope};
use tenure_host::coding_agent::CodingAgent;
use tenure_host::interprocess::CommandExit;
use tenure_host::paths::work_tree_of;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use self::agent_hooks::AgentHooks;
use self::check::Check;
use self::server::{EnforcementMode, ServerProbe};
use crate::command::file::install::InstallEnvironment;
use crate::exit;
use crate::failure::Failure;
use crate::output::Format;
use crate::terminal_message::ProgressLine;

/// Says whether every change of a file is asked for here, and what is not covered, and why.
///
/// It tries it: it runs the installed hooks of each agent as that agent would, with a write to a canary, a file that is never
/// there, and looks whether the server was asked; it runs a command under the guard that wants a file which another session
/// has. It looks where git looks for hooks, and asks Codex whether it trusts ours. The server is started if none answers.
///
/// STATUS is `ok`, `gap` (changes get past it; below is what that means, and what helps), `not installed`, or `not known` (it
/// could not be tried). Nothing stays behind: canaries and sessions of the doctor (`tenure-doctor-…`) end with it. It takes a
/// few seconds.
///
/// Exit code 0: no gap. 1: there is one.
///
/// Example: tenure doctor
/// Example: tenure doctor --json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Doctor {
    #[command(flatten)]
    format: Format,
}

/// Runs what only a doctor starts. Nothing, if this is nothing of that.
pub fn run_internal_subcommand(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    (arguments.nth(1)? == fake_agent::NAME).then(fake_agent::run)
}

impl Doctor {
    /// Looks at everything, and says it.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let environment = DoctorEnvironment::detect()?;
        let canaries = environment.canaries.clone();
        let checks = match run_unless_signalled(move || run_checks(&environment))? {
            Ok(checks) => checks,
            Err(signal) => {
                end_all_descendants();
                canaries.inspect(canary::Canaries::remove);
                return Ok(CommandExit::Signal(signal).exit_code().into());
            }
        };
        self.format.print(&checks, |checks| check::text(checks))?;
        let is_well = !checks.iter().any(Check::is_gap);
        Ok(if is_well { ExitCode::SUCCESS } else { exit::NO.into() })
    }
}

/// Everything, one after the other.
fn run_checks(environment: &DoctorEnvironment) -> Vec<Check> {
    let mut progress = ProgressLine::new();
    let mut begin = |what: &str| progress.show(&format!("tenure: looking at {what} …"));
    let mut checks = Vec::new();
    checks.push(check_work_tree(environment));
    begin("the server");
    let (check, server) = ServerProbe::connect_or_start();
    checks.push(check);
    let canaries = environment.canaries.as_ref();
    // Without a server nobody can be asked, and nothing can be tried.
    let trying = server.as_ref().and_then(|server| Some((server, canaries?)));
    let mode = trying.map_or(EnforcementMode::Deny, |(server, canaries)| {
        let (check, mode) = server.check_mode(canaries);
        checks.push(check);
        mode
    });
    let mut has_agents = false;
    for agent in CodingAgent::ALL {
        begin(agent.as_str());
        let found = AgentHooks::read(agent, environment);
        has_agents |= found.installed().next().is_some();
        checks.extend(found.check(environment, server.as_ref()));
        checks.extend(match agent {
            CodingAgent::Codex => codex_trust::check(&found, environment.folder()),
            CodingAgent::Gemini => gemini_trust::check(&found, environment),
            CodingAgent::Claude | CodingAgent::Cursor | CodingAgent::OpenCode => None,
        });
        checks.extend(shell::check(&found, environment, server.as_ref().map(|_| mode)));
    }
    begin("the gate");
    checks.extend(guard_checks::check_kernel_support(environment.seccomp_unavailable_reason()));
    checks.push(match (trying, environment.seccomp_unavailable_reason()) {
        (_, Some(_)) => Check::unknown("gate.canary", "it is not fired: calls cannot be watched here"),
        (Some((_, canaries)), None) => guard_checks::check_canary(canaries, mode),
        (None, None) if server.is_none() => {
            Check::unknown("gate.canary", "it is fired only where a server answers")
        }
        (None, None) => Check::unknown("gate.canary", environment.canary_unavailable_reason()),
    });
    begin("git");
    checks.extend(agent_hooks::check_git_hooks(environment, has_agents));
    begin("the audit");
    checks.extend(environment.root.as_deref().map(guard_checks::check_watch_limit));
    if let Some(server) = &server {
        let files = environment.root.as_deref().and_then(|root| Some((server.files().ok()?, root)));
        checks.extend(
            files.map(|(files, root)| guard_checks::check_watch_coverage(&files, root)).unwrap_or_default(),
        );
        server.wait_until_sessions_end();
    }
    checks
}

fn check_work_tree(environment: &DoctorEnvironment) -> Check {
    match (&environment.root, &environment.canaries) {
        (Some(root), Some(_)) => Check::ok("tree", root.display().to_string()),
        (Some(root), None) => {
            let what =
                format!("git ignores whatever a canary could be called in {}: none is fired", root.display());
            Check::unknown("tree", what)
        }
        (None, _) => Check::unknown(
            "tree",
            "we are in no working tree of git: no canary is fired, and only the machine is looked at",
        )
        .with_fix("cd into a project, and run it again"),
    }
}

/// The result of `work`, which may wait as it likes; or the signal that came before it.
fn run_unless_signalled<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Result<T, i32>, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(exit::UNAVAILABLE, "the system gives no means to look around", &error)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    runtime.block_on(async {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [mut interrupt, mut terminate, mut hangup] =
            [signal(kinds[0]), signal(kinds[1]), signal(kinds[2])];
        let (sender, done) = oneshot::channel();
        // A thread that stays until all is done: those whom it starts end with it.
        std::thread::Builder::new().spawn(move || drop(sender.send(work()))).map_err(cannot)?;
        let wait = async |signal: &mut std::io::Result<tokio::signal::unix::Signal>| match signal {
            Ok(signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        };
        let received = tokio::select! {
            done = done => {
                let mistake = |_| Failure::from_message(exit::UNAVAILABLE, "there is a mistake in Tenure itself");
                return done.map(Ok).map_err(mistake);
            }
            () = wait(&mut interrupt) => kinds[0],
            () = wait(&mut terminate) => kinds[1],
            () = wait(&mut hangup) => kinds[2],
        };
        Ok(Err(received.as_raw_value()))
    })
}

pub struct DoctorEnvironment {
    /// The top of the working tree that we are in, if we are in one.
    pub root: Option<PathBuf>,
    /// Canaries for it. Nothing without a tree, or where git ignores such names.
    pub canaries: Option<Canaries>,
    environment: InstallEnvironment,
}

impl DoctorEnvironment {
    pub fn detect() -> Result<Self, Failure> {
        let surroundings = InstallEnvironment::detect()?;
        let folder = std::env::current_dir().ok();
        let root = folder.and_then(|folder| work_tree_of(&folder).ok().flatten()).map(|tree| tree.root);
        let canaries = root.as_deref().and_then(Canaries::new);
        Ok(Self { root, canaries, environment: surroundings })
    }

    /// Where hooks of this scope are. Nothing outside of a tree, or where nobody is at home.
    pub fn install_location(&self, scope: InstallScope) -> Option<InstallContext> {
        let root = if scope == InstallScope::User { self.home()?.to_owned() } else { self.root.clone()? };
        Some(self.environment.location(root, scope))
    }

    /// The nearest place that there is.
    pub fn nearest_install_location(&self) -> Option<InstallContext> {
        self.install_location(InstallScope::Project).or_else(|| self.install_location(InstallScope::User))
    }

    /// The person's home, if there is one.
    pub fn home(&self) -> Option<&Path> {
        self.environment.person.home.as_deref()
    }

    /// Why calls cannot be watched on this system; nothing, if they can.
    pub fn seccomp_unavailable_reason(&self) -> Option<&str> {
        self.environment.unwatchable.as_deref()
    }

    /// Why no canary is fired, where none is though a server answers.
    pub fn canary_unavailable_reason(&self) -> &'static str {
        match self.root {
            Some(_) => "it is not fired: git ignores whatever a canary could be called here",
            None => "it is fired only in a working tree of git",
        }
    }

    /// The folder that agents are asked about: the tree, else the home.
    pub fn folder(&self) -> &Path {
        self.root.as_deref().or(self.home()).unwrap_or(Path::new("/"))
    }
}

/// The scopes that an agent has, the one that counts most first.
pub const fn scopes(agent: CodingAgent) -> &'static [InstallScope] {
    match agent {
        CodingAgent::Claude => &[InstallScope::Local, InstallScope::Project, InstallScope::User],
        _ => &[InstallScope::Project, InstallScope::User],
    }
}

pub const fn scope_name(scope: InstallScope) -> &'static str {
    match scope {
        InstallScope::Local => "local",
        InstallScope::Project => "project",
        InstallScope::User => "user",
    }
}

/// The command that puts hooks in place there.
pub fn install_command(agent: CodingAgent, scope: InstallScope) -> String {
    match scope {
        InstallScope::Project => format!("tenure install {agent}"),
        scope => format!("tenure install {agent} --{}", scope_name(scope)),
    }
}
