//! The shell of an agent: whether its commands need leases for what they write.

use std::path::{Path, PathBuf};

use tenure_hooks::install::{ConfiguredShell, configured_shell, is_own_shell};
use tenure_hooks::interception_coverage::guard_command;
use tenure_host::coding_agent::CodingAgent;

use super::agent_hooks::AgentHooks;
use super::canary::{Canaries, CanaryHolder};
use super::check::Check;
use super::fake_agent::FakeAgent;
use super::guard_checks::{ALLOW_SECCOMP_FIX, WRITE_SCRIPT, verify_denied};
use super::invoke::{HookProgramState, inspect_program};
use super::server::EnforcementMode;
use super::{DoctorEnvironment, install_command};
use crate::config::variable;

const INSIDE: &str = "we are inside a guard, which watches whatever is started here";

/// What covers the shell of an agent that has hooks of ours. Nothing, if it has none. It is tried where there is a server.
pub fn check(
    found: &AgentHooks,
    environment: &DoctorEnvironment,
    server: Option<EnforcementMode>,
) -> Option<Check> {
    let (scope, _) = found.installed().next()?;
    let agent = found.agent;
    let name = format!("{agent}.shell");
    let install = install_command(agent, scope);
    let preference = environment
        .nearest_install_location()
        .map_or(ConfiguredShell::Unset, |place| configured_shell(agent, &place));
    if let (CodingAgent::OpenCode, ConfiguredShell::Unclear { path }) = (agent, &preference) {
        let what = format!("{} cannot be read: it has comments, and may name a shell", path.display());
        return Some(Check::unknown(name, what));
    }
    let is_takable =
        matches!(agent, CodingAgent::Claude | CodingAgent::OpenCode) && preference == ConfiguredShell::Unset;
    let fix = match (environment.seccomp_unavailable_reason(), is_takable) {
        (Some(_), true) => format!("{ALLOW_SECCOMP_FIX}, and `{install}`"),
        (Some(_), false) => ALLOW_SECCOMP_FIX.to_owned(),
        (None, true) => install.clone(),
        (None, false) => guard_command(agent).to_owned(),
    };
    let Some(shell) = shell(found, &preference).filter(|shell| is_own_shell(shell)) else {
        if tenure_guard::is_guarded() {
            return Some(Check::ok(name, INSIDE));
        }
        let which = match preference {
            ConfiguredShell::Set { by } => format!(" that you chose ({by})"),
            ConfiguredShell::Unset | ConfiguredShell::Unclear { .. } => String::new(),
        };
        let what = format!(
            "its commands run in a shell{which}, which does not ask: what they write is seen by the audit only, and nothing is \
             stopped"
        );
        return Some(Check::gap(name, what, fix));
    };
    let shown = shell.display();
    if let Some(why) = environment.seccomp_unavailable_reason() {
        let what = format!(
            "its commands run in {shown}, and the system does not let calls be watched ({why}): none of them runs"
        );
        let fix = format!(
            "{ALLOW_SECCOMP_FIX}; or `{install}`, which leaves that shell out, or `tenure uninstall {agent}`"
        );
        return Some(Check::gap(name, what, fix));
    }
    let program = inspect_program(&shell);
    if let (HookProgramState::Missing | HookProgramState::NotExecutable, Some(wrong)) =
        (program, program.problem())
    {
        let what =
            format!("its commands should run in {shown}, which {wrong}: what they write is not asked for");
        return Some(Check::gap(name, what, install));
    }
    let (Some(canaries), Some(mode)) = (&environment.canaries, server) else {
        let why = if server.is_some() {
            environment.canary_unavailable_reason()
        } else {
            "it is tried only where a server answers"
        };
        return Some(Check::unknown(name, why));
    };
    // Another copy or version is as good, if it refuses.
    let which =
        if program == HookProgramState::Other { ", which is another program than this one," } else { "" };
    Some(match run_canary(agent, &shell, canaries, mode) {
        Ok(()) => Check::ok(name, format!("{shown} refuses what another one has")),
        Err(why) => Check::gap(name, format!("{shown}{which} does not do what it should: {why}"), install),
    })
}

/// The shell that the agent's commands run in, as far as its settings say.
fn shell(found: &AgentHooks, preference: &ConfiguredShell) -> Option<PathBuf> {
    if found.agent == CodingAgent::OpenCode && matches!(preference, ConfiguredShell::Set { .. }) {
        return None;
    }
    let named = found.settings().find_map(|found| found.shell.clone());
    let exported =
        || variable("CLAUDE_CODE_SHELL").map(PathBuf::from).filter(|_| found.agent == CodingAgent::Claude);
    named.or_else(exported).filter(|shell| !shell.as_os_str().is_empty())
}

/// Its command writes what another session has.
fn run_canary(
    agent: CodingAgent,
    shell: &Path,
    canaries: &Canaries,
    mode: EnforcementMode,
) -> Result<(), String> {
    let path = canaries.next();
    let holder = CanaryHolder::acquire(canaries, &path)?;
    let mut stand_in = FakeAgent::start(agent).map_err(|error| error.to_string())?;
    let (shell, file) = shell.to_str().zip(path.to_str()).ok_or("its path is not UTF-8")?;
    let output = stand_in.run(shell, &["-c", WRITE_SCRIPT, file], "")?;
    verify_denied(&output, &path, Some(&*holder.session).filter(|_| !tenure_guard::is_guarded()), mode)
}
