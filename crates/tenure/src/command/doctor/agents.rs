//! The hooks of an agent: whether they are in place, and a canary through each.

use std::path::Path;

use tenure_gate::agent::Agent;
use tenure_gate::install::{Installed, Scope, Unreadable, installed};

use super::answer::{allows, words};
use super::canary::{Canaries, session};
use super::check::Check;
use super::firing::Hooks;
use super::ground::{Ground, install, name, scopes};
use super::program::{Named, OTHER, named};
use super::server::Server;
use super::stand_in::StandIn;

/// What is in place for an agent, in each of its scopes.
pub struct Found {
    pub agent: Agent,
    /// The nearest scope first. Why it cannot be read, where it cannot.
    pub scopes: Vec<(Scope, Result<Installed, String>)>,
}

impl Found {
    pub fn read(agent: Agent, ground: &Ground) -> Self {
        let places = scopes(agent).iter().filter_map(|scope| Some((*scope, ground.place(*scope)?)));
        let read = |(scope, place)| (scope, installed(agent, &place).map_err(|error| error.to_string()));
        Self { agent, scopes: places.map(read).collect() }
    }

    /// The scopes that have hooks of ours.
    pub fn installed(&self) -> impl Iterator<Item = (Scope, &Installed)> {
        let found = self.scopes.iter().filter_map(|(scope, found)| Some((*scope, found.as_ref().ok()?)));
        found.filter(|(_, found)| !found.programs.is_empty())
    }

    /// All that the scopes say, the nearest first.
    pub fn settings(&self) -> impl Iterator<Item = &Installed> {
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
    pub fn check(&self, ground: &Ground, server: Option<&Server>) -> Vec<Check> {
        let switch = self.switched_off();
        let mut checks = Vec::new();
        for (scope, found) in &self.scopes {
            let title = format!("{}.{}", self.agent, name(*scope));
            let hooks = format!("{title}.hooks");
            let fix = install(self.agent, *scope);
            let found = match found {
                Ok(Installed { unreadable: Some(why), path, .. }) => {
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
            let fired = match (server, &ground.canaries) {
                (Some(server), Some(canaries)) => canary_through(self.agent, found, server, canaries),
                (None, _) => Fired::NotTried("it is fired only where a server answers".to_owned()),
                (_, None) => Fired::NotTried(ground.why_no_canary().to_owned()),
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
fn judged(found: &Installed, fired: &Fired) -> Result<String, String> {
    let path = found.path.display();
    let mut detail = path.to_string();
    for program in &found.programs {
        match named(program) {
            Named::Same => {}
            // Another copy or version is as good, if it does what it should.
            Named::Other if !matches!(fired, Fired::Failed(_)) => {
                detail = format!("{path}; it runs {}, which {OTHER}", program.display());
            }
            other => {
                let wrong = other.wrong().unwrap_or_default();
                return Err(format!("{path} names {}, which {wrong}", program.display()));
            }
        }
    }
    // What another version puts there is not known here.
    let is_other = found.programs.iter().any(|program| named(program) == Named::Other);
    if found.is_complete || is_other && matches!(fired, Fired::Passed) {
        return Ok(detail);
    }
    Err(format!("what is in {path} is not all that `tenure install` puts there: some events pass unheard"))
}

/// Settings that have hooks of ours, as it seems, and cannot be read.
fn unreadable(agent: Agent, hooks: String, why: Unreadable, path: &Path) -> Check {
    let path = path.display();
    match why {
        Unreadable::Comments { line } if agent == Agent::Gemini => {
            let what = format!(
                "{path} cannot be read: it has comments (line {line}). The agent reads them, the doctor does not"
            );
            Check::unknown(hooks, what).with_fix("take the comments out, and run it again")
        }
        Unreadable::Comments { line } => {
            let what = format!(
                "{path} cannot be read: it has comments (line {line}). The agent may run no hook of it"
            );
            Check::gap(hooks, what, "take the comments out")
        }
        Unreadable::NotJson { line } => {
            let what = format!(
                "{path} cannot be read: it is not JSON (line {line}). The agent may run no hook of it"
            );
            Check::gap(hooks, what, format!("mend {path}"))
        }
    }
}

enum Fired {
    Passed,
    Failed(String),
    NotTried(String),
}

impl Fired {
    fn named(self, name: String, fix: String) -> Check {
        match self {
            Fired::Passed => {
                Check::ok(name, "a write asked for its lease, and the end of the session gave it back")
            }
            Fired::Failed(why) => Check::gap(name, why, fix),
            Fired::NotTried(why) => Check::unknown(name, why),
        }
    }
}

/// A write to a file that nobody has, through what is installed, and the end of its session.
fn canary_through(agent: Agent, found: &Installed, server: &Server, canaries: &Canaries) -> Fired {
    let mut stand_in = match StandIn::start(agent) {
        Ok(stand_in) => stand_in,
        Err(error) => return Fired::NotTried(format!("no process can be started: {error}")),
    };
    let hooks = match Hooks::of(agent, found, &mut stand_in) {
        Ok(hooks) => hooks,
        Err(why) => return Fired::NotTried(why),
    };
    let (session, path, root) = (session(), canaries.next(), canaries.root());
    let owner = || server.owner(&path);
    let said = match hooks.write(&mut stand_in, &session, root, &path) {
        Ok(said) if allows(agent, &said) => said,
        Ok(said) => {
            return Fired::Failed(format!("a write to a file that nobody has is refused: {}", words(&said)));
        }
        Err(why) => return Fired::Failed(format!("before a write: {why}")),
    };
    match owner() {
        Ok(Some(owner)) if owner == session => {}
        Ok(_) => {
            let said = words(&said);
            return Fired::Failed(format!(
                "the hook lets a write pass, and the server was not asked: no edit of this agent is leased. The hook: {said}"
            ));
        }
        Err(why) => return Fired::NotTried(format!("the server does not say who has the canary: {why}")),
    }
    if let Err(why) = hooks.end(&mut stand_in, &session, root) {
        return Fired::Failed(format!("at the end of a session: {why}"));
    }
    match owner() {
        Ok(None) => Fired::Passed,
        Ok(Some(_)) => Fired::Failed(
            "the end of a session is not told: what it had stays its own until the agent's process ends"
                .to_owned(),
        ),
        Err(why) => Fired::NotTried(format!("the server does not say who has the canary: {why}")),
    }
}
