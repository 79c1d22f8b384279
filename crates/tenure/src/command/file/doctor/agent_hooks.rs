//! The hooks of an agent: whether they are in place, and a canary through each.

use std::path::Path;
use std::process::{Command, Stdio};

use tenure_hooks::install::{
    GitHookStatus, InstallError, InstallScope, InstallStatus, UnreadableSettings, git_hook_status,
    install_status,
};
use tenure_host::coding_agent::CodingAgent;

use super::canary::{Canaries, new_session_name};
use super::check::Check;
use super::fake_agent::FakeAgent;
use super::invoke::{
    HookInvoker, HookProgramState, OTHER_PROGRAM, describe_response, inspect_program, is_allowed,
};
use super::server::ServerProbe;
use super::{DoctorEnvironment, install_command, scope_name, scopes};

/// What is in place for an agent, in each of its scopes.
pub struct AgentHooks {
    pub agent: CodingAgent,
    /// The nearest scope first. Why it cannot be read, where it cannot.
    pub scopes: Vec<(InstallScope, Result<InstallStatus, String>)>,
}

impl AgentHooks {
    pub fn read(agent: CodingAgent, environment: &DoctorEnvironment) -> Self {
        let places =
            scopes(agent).iter().filter_map(|scope| Some((*scope, environment.install_location(*scope)?)));
        let read = |(scope, place)| (scope, install_status(agent, &place).map_err(|error| error.to_string()));
        Self { agent, scopes: places.map(read).collect() }
    }

    /// The scopes that have hooks of ours.
    pub fn installed(&self) -> impl Iterator<Item = (InstallScope, &InstallStatus)> {
        let found = self.scopes.iter().filter_map(|(scope, found)| Some((*scope, found.as_ref().ok()?)));
        found.filter(|(_, found)| !found.programs.is_empty())
    }

    /// All that the scopes say, the nearest first.
    pub fn settings(&self) -> impl Iterator<Item = &InstallStatus> {
        self.scopes.iter().filter_map(|(_, found)| found.as_ref().ok())
    }

    /// The switch that turns our hooks off, and the file that it is in. Of each switch the nearest scope that sets it counts.
    fn switched_off(&self) -> Option<String> {
        let mut seen = Vec::new();
        for found in self.settings() {
            for (switch, is_off) in &found.switches {
                if seen.contains(switch) {
                    continue;
                }
                if *is_off {
                    return Some(format!("`{switch}` in {}", found.path.display()));
                }
                seen.push(*switch);
            }
        }
        None
    }

    /// Two lines for each scope: whether the hooks are as they should be, and what became of the canary.
    pub fn check(&self, environment: &DoctorEnvironment, server: Option<&ServerProbe>) -> Vec<Check> {
        let switch = self.switched_off();
        let mut checks = Vec::new();
        for (scope, found) in &self.scopes {
            let title = format!("{}.{}", self.agent, scope_name(*scope));
            let hooks = format!("{title}.hooks");
            let fix = install_command(self.agent, *scope);
            let found = match found {
                Ok(InstallStatus { unreadable: Some(why), path, .. }) => {
                    checks.push(unreadable(self.agent, hooks, *why, path));
                    continue;
                }
                Ok(found) if found.programs.is_empty() => {
                    checks.push(Check::not_installed(hooks, format!("`{fix}` puts hooks in")));
                    continue;
                }
                Ok(found) => found,
                Err(why) => {
                    checks.push(Check::gap(hooks, why.clone(), fix));
                    continue;
                }
            };
            let fired = match (server, &environment.canaries) {
                (Some(server), Some(canaries)) => canary_through(self.agent, found, server, canaries),
                (None, _) => CanaryResult::Skipped("it is fired only where a server answers".to_owned()),
                (_, None) => CanaryResult::Skipped(environment.canary_unavailable_reason().to_owned()),
            };
            checks.push(match (judged(found, &fired), &switch) {
                (Err(wrong), _) => Check::gap(hooks, wrong, fix.clone()),
                (Ok(_), Some(switch)) => Check::gap(
                    hooks,
                    format!("hooks are switched off by {switch}: the agent runs none of ours, and edits without asking"),
                    format!("take {switch} out"),
                ),
                (Ok(detail), None) => Check::ok(hooks, detail),
            });
            checks.push(fired.named(format!("{title}.canary"), fix));
        }
        checks
    }
}

/// What is wrong with hooks that are there; or what to say of them if nothing is.
fn judged(found: &InstallStatus, fired: &CanaryResult) -> Result<String, String> {
    let path = found.path.display();
    let mut detail = path.to_string();
    for program in &found.programs {
        match inspect_program(program) {
            HookProgramState::Same => {}
            // Another copy or version is as good, if it does what it should.
            HookProgramState::Other if !matches!(fired, CanaryResult::Failed(_)) => {
                detail = format!("{path}; it runs {}, which {OTHER_PROGRAM}", program.display());
            }
            other => {
                let wrong = other.problem().unwrap_or_default();
                return Err(format!("{path} names {}, which {wrong}", program.display()));
            }
        }
    }
    // What another version puts there is not known here.
    let is_other = found.programs.iter().any(|program| inspect_program(program) == HookProgramState::Other);
    if found.is_complete || is_other && matches!(fired, CanaryResult::Passed) {
        return Ok(detail);
    }
    Err(format!("what is in {path} is not all that `tenure install` puts there: some events pass unheard"))
}

/// Settings that have hooks of ours, as it seems, and cannot be read.
fn unreadable(agent: CodingAgent, hooks: String, why: UnreadableSettings, path: &Path) -> Check {
    let path = path.display();
    match why {
        UnreadableSettings::Comments { line } if agent == CodingAgent::Gemini => {
            let what = format!(
                "{path} cannot be read: it has comments (line {line}). The agent reads them, the doctor does not"
            );
            Check::unknown(hooks, what).with_fix("take the comments out, and run it again")
        }
        UnreadableSettings::Comments { line } => {
            let what = format!(
                "{path} cannot be read: it has comments (line {line}). The agent may run no hook of it"
            );
            Check::gap(hooks, what, "take the comments out")
        }
        UnreadableSettings::NotJson { line } => {
            let what = format!(
                "{path} cannot be read: it is not JSON (line {line}). The agent may run no hook of it"
            );
            Check::gap(hooks, what, format!("mend {path}"))
        }
    }
}

enum CanaryResult {
    Passed,
    Failed(String),
    Skipped(String),
}

impl CanaryResult {
    fn named(self, name: String, fix: String) -> Check {
        match self {
            CanaryResult::Passed => {
                Check::ok(name, "a write asked for its lease, and the end of the session gave it back")
            }
            CanaryResult::Failed(why) => Check::gap(name, why, fix),
            CanaryResult::Skipped(why) => Check::unknown(name, why),
        }
    }
}

/// A write to a file that nobody has, through what is installed, and the end of its session.
fn canary_through(
    agent: CodingAgent,
    found: &InstallStatus,
    server: &ServerProbe,
    canaries: &Canaries,
) -> CanaryResult {
    let mut stand_in = match FakeAgent::start(agent) {
        Ok(stand_in) => stand_in,
        Err(error) => return CanaryResult::Skipped(format!("no process can be started: {error}")),
    };
    let hooks = match HookInvoker::new(agent, found, &mut stand_in) {
        Ok(hooks) => hooks,
        Err(why) => return CanaryResult::Skipped(why),
    };
    let (session, path, root) = (new_session_name(), canaries.next(), canaries.root());
    let owner = || server.file_owner(&path);
    let output = match hooks.invoke_before_write(&mut stand_in, &session, root, &path) {
        Ok(response) if is_allowed(agent, &response) => response,
        Ok(response) => {
            return CanaryResult::Failed(format!(
                "a write to a file that nobody has is refused: {}",
                describe_response(&response)
            ));
        }
        Err(why) => return CanaryResult::Failed(format!("before a write: {why}")),
    };
    match owner() {
        Ok(Some(owner)) if owner == session => {}
        Ok(_) => {
            let response = describe_response(&output);
            return CanaryResult::Failed(format!(
                "the hook lets a write pass, and the server was not asked: no edit of this agent is leased. The hook: {response}"
            ));
        }
        Err(why) => {
            return CanaryResult::Skipped(format!("the server does not say who has the canary: {why}"));
        }
    }
    if let Err(why) = hooks.invoke_session_end(&mut stand_in, &session, root) {
        return CanaryResult::Failed(format!("at the end of a session: {why}"));
    }
    match owner() {
        Ok(None) => CanaryResult::Passed,
        Ok(Some(_)) => CanaryResult::Failed(
            "the end of a session is not told: what it had stays its own until the agent's process ends"
                .to_owned(),
        ),
        Err(why) => CanaryResult::Skipped(format!("the server does not say who has the canary: {why}")),
    }
}

const NAME: &str = "git.hooks";
const FIX: &str = "tenure install git";
const MISSING_HOOK_EFFECT: &str = "what is committed is let go of 30 s after the turn, and not at the commit";

/// What git would run. Without an agent that has hooks nobody needs them.
pub fn check_git_hooks(environment: &DoctorEnvironment, has_agents: bool) -> Option<Check> {
    let place = environment.install_location(InstallScope::Project)?;
    Some(match git_hook_status(&place) {
        Ok(found) => judge_git_hooks(&found, has_agents),
        Err(_) if !has_agents => Check::not_installed(NAME, "no agent needs them here"),
        Err(error @ InstallError::NoHooksFolder { .. }) => {
            let fix = format!("set `core.hooksPath` to a folder, or unset it; then `{FIX}`");
            Check::gap(NAME, format!("{error}: {MISSING_HOOK_EFFECT}"), fix)
        }
        Err(error) => Check::gap(NAME, format!("{error}: {MISSING_HOOK_EFFECT}"), FIX),
    })
}

fn judge_git_hooks(found: &GitHookStatus, has_agents: bool) -> Check {
    let folder = found.folder.path.display();
    let led = if found.folder.is_configured { " (`core.hooksPath` leads there)" } else { "" };
    if found.installed.is_empty() && !has_agents {
        return Check::not_installed(NAME, format!("`{FIX}` puts them in"));
    }
    if !found.missing.is_empty() {
        let what = format!(
            "git looks for hooks in {folder}{led}, and {} of Tenure is not there: {MISSING_HOOK_EFFECT}",
            found.missing.join(", ")
        );
        return Check::gap(NAME, what, FIX);
    }
    for hook in &found.installed {
        let path = hook.path.display();
        if !hook.is_executable {
            let what = format!("{path} cannot be executed, so git passes it over");
            return Check::gap(NAME, what, format!("chmod +x {path}"));
        }
        let wrong = match hook.program.as_deref().map(|program| (program, inspect_program(program))) {
            Some((program, HookProgramState::Other)) if is_tenure(program) => None,
            Some((program, other)) => {
                other.problem().map(|wrong| format!("{}, which {wrong}", program.display()))
            }
            None => Some("no program".to_owned()),
        };
        if let Some(wrong) = wrong {
            return Check::gap(NAME, format!("{path} runs {wrong}: no commit is told"), FIX);
        }
    }
    if !found.is_complete {
        return Check::gap(NAME, format!("the hooks in {folder} are not as they should be"), FIX);
    }
    Check::ok(NAME, format!("{folder}{led}"))
}

/// Whether another program is a `tenure` too, and runs.
fn is_tenure(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success() && output.stdout.starts_with(b"tenure "))
}
