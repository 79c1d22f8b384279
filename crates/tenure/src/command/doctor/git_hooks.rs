//! The hooks of git: whether they are where git looks.

use std::path::Path;
use std::process::{Command, Stdio};

use tenure_gate::install::{GitHookStatus, InstallError, InstallScope, git_hook_status};

use super::check::Check;
use super::env::DoctorEnvironment;
use super::hook_program::{HookProgramState, inspect_program};

const NAME: &str = "git.hooks";
const FIX: &str = "tenure install git";
const MISSING_HOOK_EFFECT: &str = "what is committed is let go of 30 s after the turn, and not at the commit";

/// What git would run. Without an agent that has hooks nobody needs them.
pub fn check(environment: &DoctorEnvironment, has_agents: bool) -> Option<Check> {
    let place = environment.install_location(InstallScope::Project)?;
    Some(match git_hook_status(&place) {
        Ok(found) => judged(&found, has_agents),
        Err(_) if !has_agents => Check::not_installed(NAME, "no agent needs them here"),
        Err(error @ InstallError::NoHooksFolder { .. }) => {
            let fix = format!("set `core.hooksPath` to a folder, or unset it; then `{FIX}`");
            Check::gap(NAME, format!("{error}: {MISSING_HOOK_EFFECT}"), fix)
        }
        Err(error) => Check::gap(NAME, format!("{error}: {MISSING_HOOK_EFFECT}"), FIX),
    })
}

fn judged(found: &GitHookStatus, has_agents: bool) -> Check {
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
