//! `tenure doctor`.
//!
//! ```text
//! ground    where we stand                     stand_in  a process that is called like an agent
//! canary    names that say whose they are      holder    a session of ours that has a canary
//! payload, answer, firing   what agents say to their hooks, and make of what they hear
//! server, agents, trust, folder_trust, shell, gate, git_hooks, audit   one kind of check each
//! check, view               what was found, and how people read it
//! ```

mod agents;
mod answer;
mod audit;
mod canary;
mod check;
mod firing;
mod folder_trust;
mod gate;
mod git_hooks;
mod ground;
mod holder;
mod payload;
mod program;
mod server;
mod shell;
mod stand_in;
mod trust;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use tenure_gate::agent::Agent;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use self::agents::Found;
use self::check::Check;
use self::ground::Ground;
use self::server::{Mode, Server};
use crate::exit;
use crate::failure::Failure;
use crate::guard::end_all;
use crate::message::Progress;
use crate::output::Format;

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
pub fn assistant(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    (arguments.nth(1)? == stand_in::NAME).then(stand_in::run)
}

impl Doctor {
    /// Looks at everything, and says it.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let ground = Ground::find()?;
        let canaries = ground.canaries.clone();
        let checks = match unless_told(move || examine(&ground))? {
            Ok(checks) => checks,
            Err(signal) => {
                end_all();
                canaries.inspect(canary::Canaries::remove);
                return Ok(exit::by_signal(signal).into());
            }
        };
        self.format.print(&checks, |checks| check::text(checks))?;
        let is_well = !checks.iter().any(Check::is_gap);
        Ok(if is_well { ExitCode::SUCCESS } else { exit::NO.into() })
    }
}

/// Everything, one after the other.
fn examine(ground: &Ground) -> Vec<Check> {
    let mut progress = Progress::new();
    let mut begin = |what: &str| progress.show(&format!("tenure: looking at {what} …"));
    let mut checks = Vec::new();
    checks.push(tree(ground));
    begin("the server");
    let (check, server) = Server::reach();
    checks.push(check);
    let canaries = ground.canaries.as_ref();
    // Without a server nobody can be asked, and nothing can be tried.
    let trying = server.as_ref().and_then(|server| Some((server, canaries?)));
    let mode = trying.map_or(Mode::Denies, |(server, canaries)| {
        let (check, mode) = server.mode(canaries);
        checks.push(check);
        mode
    });
    let mut has_agents = false;
    for agent in Agent::ALL {
        begin(agent.as_str());
        let found = Found::read(agent, ground);
        has_agents |= found.installed().next().is_some();
        checks.extend(found.check(ground, server.as_ref()));
        checks.extend(match agent {
            Agent::Codex => trust::check(&found, ground.folder()),
            Agent::Gemini => folder_trust::check(&found, ground),
            Agent::Claude | Agent::Cursor | Agent::OpenCode => None,
        });
        checks.extend(shell::check(&found, ground, server.as_ref().map(|_| mode)));
    }
    begin("the gate");
    checks.extend(gate::system(ground.unwatchable()));
    checks.push(match (trying, ground.unwatchable()) {
        (_, Some(_)) => Check::unknown("gate.canary", "it is not fired: calls cannot be watched here"),
        (Some((_, canaries)), None) => gate::canary(canaries, mode),
        (None, None) if server.is_none() => {
            Check::unknown("gate.canary", "it is fired only where a server answers")
        }
        (None, None) => Check::unknown("gate.canary", ground.why_no_canary()),
    });
    begin("git");
    checks.extend(git_hooks::check(ground, has_agents));
    begin("the audit");
    checks.extend(ground.root.as_deref().map(audit::watches));
    if let Some(server) = &server {
        let files = ground.root.as_deref().and_then(|root| Some((server.files().ok()?, root)));
        checks.extend(files.map(|(files, root)| audit::reported(&files, root)).unwrap_or_default());
        server.settle();
    }
    checks
}

fn tree(ground: &Ground) -> Check {
    match (&ground.root, &ground.canaries) {
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
fn unless_told<T: Send + 'static>(
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
        let told = tokio::select! {
            done = done => {
                let mistake = |_| Failure::said(exit::UNAVAILABLE, "there is a mistake in Tenure itself");
                return done.map(Ok).map_err(mistake);
            }
            () = wait(&mut interrupt) => kinds[0],
            () = wait(&mut terminate) => kinds[1],
            () = wait(&mut hangup) => kinds[2],
        };
        Ok(Err(told.as_raw_value()))
    })
}
