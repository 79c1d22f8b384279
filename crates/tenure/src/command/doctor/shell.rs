//! The shell of an agent: whether what its commands write is asked for.

use std::path::{Path, PathBuf};

use tenure_gate::agent::Agent;

use super::agents::Found;
use super::canary::Canaries;
use super::check::Check;
use super::gate::{WRITE, refused};
use super::holder::Holder;
use super::program;
use super::server::Mode;
use super::stand_in::StandIn;
use crate::configuration::variable;
use crate::guard;

/// What covers the shell of an agent that has hooks of ours. Nothing, if it has none.
pub fn check(found: &Found, canaries: Option<&Canaries>, mode: Mode) -> Option<Check> {
    found.installed().next()?;
    let agent = found.agent;
    let name = format!("{agent}.shell");
    let fix = format!("tenure guard -- {}", command(agent));
    let Some(shell) = shell(found) else {
        let what = "its commands run in a shell that does not ask: what they write is seen by the audit only, and nothing is \
                    stopped";
        return Some(Check::gap(name, what, fix));
    };
    let shown = shell.display();
    if let Some(wrong) = program::wrong(&shell) {
        let what = format!("its commands run in {shown}, which {wrong}: what they write is not asked for");
        return Some(Check::gap(name, what, fix));
    }
    if agent == Agent::Claude && !["bash", "zsh"].iter().any(|word| shell.to_string_lossy().contains(word)) {
        let what =
            format!("{shown} has neither \"bash\" nor \"zsh\" in its name, so Claude Code does not take it");
        return Some(Check::gap(name, what, fix));
    }
    let Some(canaries) = canaries else {
        return Some(Check::unknown(name, "it is tried only in a working tree of git"));
    };
    Some(match fire(agent, &shell, canaries, mode) {
        Ok(()) => Check::ok(name, format!("{shown} refuses what another one has")),
        Err(why) => Check::gap(name, format!("{shown}: {why}"), fix),
    })
}

/// The shell that the agent's commands run in, as far as its settings say.
fn shell(found: &Found) -> Option<PathBuf> {
    let named = found.settings().find_map(|found| found.shell.clone());
    let exported =
        || variable("CLAUDE_CODE_SHELL").map(PathBuf::from).filter(|_| found.agent == Agent::Claude);
    named.or_else(exported).filter(|shell| !shell.as_os_str().is_empty())
}

/// Its command writes what another session has.
fn fire(agent: Agent, shell: &Path, canaries: &Canaries, mode: Mode) -> Result<(), String> {
    let path = canaries.next();
    let holder = Holder::take(canaries, &path)?;
    let mut stand_in = StandIn::start(agent).map_err(|error| error.to_string())?;
    let (shell, file) = shell.to_str().zip(path.to_str()).ok_or("its path is not UTF-8")?;
    let said = stand_in.run(shell, &["-c", WRITE, file], "")?;
    refused(&said, &path, Some(&*holder.session).filter(|_| !guard::is_watched()), mode)
}

/// What the agent is started with.
fn command(agent: Agent) -> &'static str {
    match agent {
        Agent::Cursor => "cursor-agent",
        agent => agent.as_str(),
    }
}
