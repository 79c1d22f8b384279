//! The shell of an agent: whether what its commands write is asked for.

use std::path::{Path, PathBuf};

use tenure_gate::agent::Agent;
use tenure_gate::coverage::guarded;
use tenure_gate::install::{Choice, choice, is_own_shell};

use super::agents::Found;
use super::canary::Canaries;
use super::check::Check;
use super::gate::{ALLOW, WRITE, refused};
use super::ground::{Ground, install};
use super::holder::Holder;
use super::program::{Named, named};
use super::server::Mode;
use super::stand_in::StandIn;
use crate::configuration::variable;
use crate::guard;

const INSIDE: &str = "we are inside a guard, which watches whatever is started here";

/// What covers the shell of an agent that has hooks of ours. Nothing, if it has none. It is tried where there is a server.
pub fn check(found: &Found, ground: &Ground, server: Option<Mode>) -> Option<Check> {
    let (scope, _) = found.installed().next()?;
    let agent = found.agent;
    let name = format!("{agent}.shell");
    let install = install(agent, scope);
    let choice = ground.nearest().map_or(Choice::Free, |place| choice(agent, &place));
    if let (Agent::OpenCode, Choice::Unclear { path }) = (agent, &choice) {
        let what = format!("{} cannot be read: it has comments, and may name a shell", path.display());
        return Some(Check::unknown(name, what));
    }
    let is_takable = matches!(agent, Agent::Claude | Agent::OpenCode) && choice == Choice::Free;
    let fix = match (ground.unwatchable(), is_takable) {
        (Some(_), true) => format!("{ALLOW}, and `{install}`"),
        (Some(_), false) => ALLOW.to_owned(),
        (None, true) => install.clone(),
        (None, false) => guarded(agent).to_owned(),
    };
    let Some(shell) = shell(found, &choice).filter(|shell| is_own_shell(shell)) else {
        if guard::is_watched() {
            return Some(Check::ok(name, INSIDE));
        }
        let which = match choice {
            Choice::Made { by } => format!(" that you chose ({by})"),
            Choice::Free | Choice::Unclear { .. } => String::new(),
        };
        let what = format!(
            "its commands run in a shell{which}, which does not ask: what they write is seen by the audit only, and nothing is \
             stopped"
        );
        return Some(Check::gap(name, what, fix));
    };
    let shown = shell.display();
    if let Some(why) = ground.unwatchable() {
        let what = format!(
            "its commands run in {shown}, and the system does not let calls be watched ({why}): none of them runs"
        );
        let fix =
            format!("{ALLOW}; or `{install}`, which leaves that shell out, or `tenure uninstall {agent}`");
        return Some(Check::gap(name, what, fix));
    }
    let program = named(&shell);
    if let (Named::Missing | Named::NotExecutable, Some(wrong)) = (program, program.wrong()) {
        let what =
            format!("its commands should run in {shown}, which {wrong}: what they write is not asked for");
        return Some(Check::gap(name, what, install));
    }
    let (Some(canaries), Some(mode)) = (&ground.canaries, server) else {
        let why =
            if server.is_some() { ground.why_no_canary() } else { "it is tried only where a server answers" };
        return Some(Check::unknown(name, why));
    };
    // Another copy or version is as good, if it refuses.
    let which = if program == Named::Other { ", which is another program than this one," } else { "" };
    Some(match fire(agent, &shell, canaries, mode) {
        Ok(()) => Check::ok(name, format!("{shown} refuses what another one has")),
        Err(why) => Check::gap(name, format!("{shown}{which} does not do what it should: {why}"), install),
    })
}

/// The shell that the agent's commands run in, as far as its settings say.
fn shell(found: &Found, choice: &Choice) -> Option<PathBuf> {
    if found.agent == Agent::OpenCode && matches!(choice, Choice::Made { .. }) {
        return None;
    }
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
