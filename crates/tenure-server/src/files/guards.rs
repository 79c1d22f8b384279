//! Guards, and the owners that they speak for: what an owner had is free only when nothing of its guards has it open any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tenure_core::kernel::{Holder, Resource};
use tenure_gate::process::{Liveness, ProcessId, open_for_writing};

use super::{FilesApi, process_identity};
use crate::app::App;

/// From so many on, those that are gone are forgotten.
const PRUNE_THRESHOLD: usize = 1_000;
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How long at the most, in looks. A guard ends its tree at once when its owner dies; one that cannot must not keep files for
/// ever.
const MAX_CHECKS: usize = 500;

/// The owners that each guard speaks for, all as the ledger names processes.
///
/// Whoever a guard was started by is above it only as long as its front lives: what goes on in the background afterwards is
/// still that one's. So it is remembered, also over a restart of the server.
pub(super) struct GuardRegistry {
    file: PathBuf,
    agents: Mutex<BTreeMap<String, GuardAgents>>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GuardAgents {
    /// The agent that it was started by.
    above: Option<String>,
    /// Agents that were started in it. What none of them started is not theirs.
    below: BTreeSet<String>,
}

impl GuardAgents {
    fn has(&self, owner: &str) -> bool {
        self.above.as_deref() == Some(owner) || self.below.contains(owner)
    }

    fn forget(&mut self, owner: &str) {
        self.above = self.above.take().filter(|above| above != owner);
        self.below.remove(owner);
    }

    fn is_empty(&self) -> bool {
        self.above.is_none() && self.below.is_empty()
    }
}

impl GuardRegistry {
    pub(super) fn open(folder: &Path) -> Self {
        let file = folder.join("guards.json");
        let known = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { file, agents: Mutex::new(known.unwrap_or_default()) }
    }

    /// A guard speaks for this owner. It writes to the disk if that is new.
    pub(super) fn record(&self, owner: &str, guard: &ProcessId) {
        let name = process_identity::process_key(guard);
        let mut agents = self.agents.lock();
        // One that speaks for itself is its own owner, and nothing has to be remembered.
        if name == owner || agents.get(&name).is_some_and(|known| known.has(owner)) {
            return;
        }
        if agents.len() >= PRUNE_THRESHOLD {
            agents.retain(|guard, _| is_alive(guard));
        }
        let is_above =
            process_identity::parse_process_key(owner).is_some_and(|owner| guard.is_descendant(&owner));
        let known = agents.entry(name).or_default();
        if is_above {
            known.above = Some(owner.to_owned());
        } else {
            known.below.insert(owner.to_owned());
        }
        save(&self.file, &agents);
    }

    /// The agent that this guard was started by, if there was one. For an orphan also the one agent that was ever started in
    /// it: of several, nobody can say whose it is.
    pub(super) fn owner_of(&self, guard: &ProcessId, orphan: bool) -> Option<ProcessId> {
        let agents = self.agents.lock().get(&process_identity::process_key(guard)).cloned()?;
        let alone = agents.below.first().filter(|_| orphan && agents.below.len() == 1);
        agents.above.as_ref().or(alone).and_then(|owner| process_identity::parse_process_key(owner))
    }

    /// The guards of this owner that live.
    pub(super) fn guards_of(&self, owner: &str) -> Vec<ProcessId> {
        let found: Vec<String> = {
            let agents = self.agents.lock();
            agents.iter().filter(|(_, known)| known.has(owner)).map(|(guard, _)| guard.clone()).collect()
        };
        let processes = found.iter().filter_map(|guard| process_identity::parse_process_key(guard));
        processes.filter(|guard| guard.liveness() != Liveness::Dead).collect()
    }

    /// The owner is gone, and so is what it had.
    pub(super) fn forget(&self, owner: &str) {
        let mut agents = self.agents.lock();
        if !agents.values().any(|known| known.has(owner)) {
            return;
        }
        agents.values_mut().for_each(|known| known.forget(owner));
        agents.retain(|_, known| !known.is_empty());
        save(&self.file, &agents);
    }
}

fn is_alive(process: &str) -> bool {
    process_identity::parse_process_key(process).is_some_and(|process| process.liveness() != Liveness::Dead)
}

/// What cannot be kept is known as long as the server lives.
fn save(file: &Path, agents: &BTreeMap<String, GuardAgents>) {
    let beside = file.with_extension("new");
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    let written = folder.and_then(|()| fs::write(&beside, serde_json::to_vec(agents).unwrap_or_default()));
    let _ = written.and_then(|()| fs::rename(&beside, file));
}

/// Returns when nothing that a guard started for this owner has open what these sessions have; after some seconds in any case.
/// Guards ask again from now on, so that nothing else is opened on the strength of what they were told.
pub(super) async fn wait_until_closed(app: &Arc<App>, owner: &str, sessions: &[Holder]) {
    for look in 0..MAX_CHECKS {
        let (own, owner, sessions) = (app.clone(), owner.to_owned(), sessions.to_vec());
        let looked = tokio::task::spawn_blocking(move || {
            let guards = own.files.guards.guards_of(&owner);
            if look == 0 && !guards.is_empty() {
                own.files.grant_generations.invalidate(&owner);
            }
            !guards.is_empty() && guards.iter().any(|guard| still_writes(&own, guard, &sessions))
        });
        if !looked.await.unwrap_or(false) {
            return;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Nothing is remembered of a process that is gone.
pub(super) fn forget(app: &App, owner: &str) {
    app.files.grant_generations.remove(owner);
    app.files.last_activity.forget(owner);
    app.files.guards.forget(owner);
    app.files.process_locks.forget(owner);
}

/// Whether anything below a guard has open what these sessions have.
fn still_writes(app: &App, guard: &ProcessId, sessions: &[Holder]) -> bool {
    let held: Vec<Resource> = app.registrar.read(|state| {
        let leases = sessions.iter().flat_map(|session| state.leases_of_holder(session));
        leases.map(|lease| lease.resource.clone()).collect()
    });
    let identities: Vec<_> = held.iter().filter_map(|name| FilesApi::identity_of(app, name)).collect();
    open_for_writing(guard, &identities).contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_of_a_guard_are_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let (guard, owner) =
            (ProcessId::own().unwrap(), process_identity::process_key(&ProcessId::of(1).unwrap()));
        let mut inside = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = process_identity::process_key(&ProcessId::of(inside.id()).unwrap());
        GuardRegistry::open(folder.path()).record(&other, &guard);
        let owner_of =
            |orphan| GuardRegistry::open(folder.path()).owner_of(&guard, orphan).map(|owner| owner.pid);
        assert_eq!(owner_of(false), None, "what an agent inside did not start is not its own");
        assert_eq!(owner_of(true), Some(inside.id()));
        GuardRegistry::open(folder.path()).record(&owner, &guard);
        let guards = GuardRegistry::open(folder.path());
        assert_eq!(guards.owner_of(&guard, true).map(|owner| owner.pid), Some(1));
        assert_eq!(guards.guards_of(&owner), vec![guard.clone()]);
        assert_eq!(guards.guards_of(&other), vec![guard.clone()], "it speaks for both");
        guards.forget(&owner);
        assert_eq!(owner_of(false), None);
        assert_eq!(GuardRegistry::open(folder.path()).guards_of(&other), vec![guard.clone()]);
        inside.kill().unwrap();
        inside.wait().unwrap();
        guards.record(&process_identity::process_key(&guard), &guard);
        assert_eq!(guards.owner_of(&guard, false), None, "a guard that speaks for itself");
    }
}
