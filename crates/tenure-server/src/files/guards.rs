//! Guards, and the owners that they speak for: what an owner had is free only when nothing of its guards has it open any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tenure_core::kernel::{Holder, ProcessId, RecordedProcess, Resource};
use tenure_gate::process::{self, Liveness, open_for_writing};

use super::FilesApi;
use crate::app::App;

/// From so many on, those that are gone are forgotten.
const PRUNE_THRESHOLD: usize = 1_000;
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How long at the most, in looks. A guard ends its tree at once when its owner dies; one that cannot must not keep files for
/// ever.
const MAX_CHECKS: usize = 500;

/// The owners that each guard speaks for.
///
/// Whoever a guard was started by is above it only as long as its front lives: what goes on in the background afterwards is
/// still that one's. So it is remembered, also over a restart of the server.
pub(super) struct GuardRegistry {
    file: PathBuf,
    agents: Mutex<BTreeMap<ProcessId, GuardAgents>>,
}

/// Processes are texts in the file, and typed in memory.
#[derive(Serialize, Deserialize)]
struct GuardAgents<P: Ord = ProcessId> {
    /// The agent that it was started by.
    above: Option<P>,
    /// Agents that were started in it. What none of them started is not theirs.
    below: BTreeSet<P>,
}

impl<P: Ord> GuardAgents<P> {
    fn filter_map<Q: Ord>(&self, convert: impl Fn(&P) -> Option<Q>) -> GuardAgents<Q> {
        let below = self.below.iter().filter_map(&convert).collect();
        GuardAgents { above: self.above.as_ref().and_then(convert), below }
    }
}

impl GuardAgents {
    fn has(&self, owner: &ProcessId) -> bool {
        self.above.as_ref() == Some(owner) || self.below.contains(owner)
    }

    fn forget(&mut self, owner: &ProcessId) {
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
        let agents = Mutex::new(load(&file).unwrap_or_default());
        Self { file, agents }
    }

    /// A guard speaks for this owner. It writes to the disk if that is new.
    pub(super) fn record(&self, owner: &ProcessId, guard: &ProcessId) {
        let mut agents = self.agents.lock();
        // One that speaks for itself is its own owner, and nothing has to be remembered.
        if guard == owner || agents.get(guard).is_some_and(|known| known.has(owner)) {
            return;
        }
        if agents.len() >= PRUNE_THRESHOLD {
            agents.retain(|guard, _| is_alive(guard));
        }
        let known = agents.entry(*guard).or_insert(GuardAgents { above: None, below: BTreeSet::new() });
        if process::is_descendant(guard, owner) {
            known.above = Some(*owner);
        } else {
            known.below.insert(*owner);
        }
        save(&self.file, &agents);
    }

    /// The agent that this guard was started by, if there was one. For an orphan also the one agent that was ever started in
    /// it: of several, nobody can say whose it is.
    pub(super) fn owner_of(&self, guard: &ProcessId, orphan: bool) -> Option<ProcessId> {
        let agents = self.agents.lock();
        let agents = agents.get(guard)?;
        let alone = agents.below.first().filter(|_| orphan && agents.below.len() == 1);
        agents.above.as_ref().or(alone).copied()
    }

    /// The guards of this owner that live.
    pub(super) fn guards_of(&self, owner: &ProcessId) -> Vec<ProcessId> {
        let mut found: Vec<ProcessId> = {
            let agents = self.agents.lock();
            agents.iter().filter(|(_, known)| known.has(owner)).map(|(guard, _)| *guard).collect()
        };
        found.retain(is_alive);
        found
    }

    /// The owner is gone, and so is what it had.
    pub(super) fn forget(&self, owner: &ProcessId) {
        let mut agents = self.agents.lock();
        if !agents.values().any(|known| known.has(owner)) {
            return;
        }
        agents.values_mut().for_each(|known| known.forget(owner));
        agents.retain(|_, known| !known.is_empty());
        save(&self.file, &agents);
    }
}

fn is_alive(process: &ProcessId) -> bool {
    process::liveness(process) != Liveness::Dead
}

fn load(file: &Path) -> Option<BTreeMap<ProcessId, GuardAgents>> {
    let stored: BTreeMap<String, GuardAgents<String>> = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let parse = |text: &String| ProcessId::parse(text);
    let known = stored.iter().filter_map(|(guard, known)| Some((parse(guard)?, known.filter_map(parse))));
    Some(known.collect())
}

/// What cannot be kept is known as long as the server lives.
fn save(file: &Path, agents: &BTreeMap<ProcessId, GuardAgents>) {
    let stored: BTreeMap<String, GuardAgents<String>> = agents
        .iter()
        .map(|(guard, known)| (guard.to_string(), known.filter_map(|owner| Some(owner.to_string()))))
        .collect();
    let beside = file.with_extension("new");
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    let written = folder.and_then(|()| fs::write(&beside, serde_json::to_vec(&stored).unwrap_or_default()));
    let _ = written.and_then(|()| fs::rename(&beside, file));
}

/// Returns when nothing that a guard started for this owner has open what these sessions have; after some seconds in any case.
/// Guards ask again from now on, so that nothing else is opened on the strength of what they were told.
pub(super) async fn wait_until_closed(app: &Arc<App>, owner: &RecordedProcess, sessions: &[Holder]) {
    let Some(owner) = owner.id() else { return };
    for look in 0..MAX_CHECKS {
        let (own, sessions) = (app.clone(), sessions.to_vec());
        let looked = tokio::task::spawn_blocking(move || {
            let guards = own.files.guards.guards_of(&owner);
            if look == 0 && !guards.is_empty() {
                own.files.grant_generations.invalidate(&owner.into());
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
pub(super) fn forget(app: &App, owner: &RecordedProcess) {
    app.files.grant_generations.remove(owner);
    app.files.last_activity.forget(owner);
    if let Some(owner) = owner.id() {
        app.files.guards.forget(&owner);
    }
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
        let (guard, owner) = (process::own().unwrap(), process::of(1).unwrap());
        let mut inside = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = process::of(inside.id()).unwrap();
        GuardRegistry::open(folder.path()).record(&other, &guard);
        let owner_of =
            |orphan| GuardRegistry::open(folder.path()).owner_of(&guard, orphan).map(|owner| owner.pid);
        assert_eq!(owner_of(false), None, "what an agent inside did not start is not its own");
        assert_eq!(owner_of(true), Some(inside.id()));
        GuardRegistry::open(folder.path()).record(&owner, &guard);
        let guards = GuardRegistry::open(folder.path());
        assert_eq!(guards.owner_of(&guard, true).map(|owner| owner.pid), Some(1));
        assert_eq!(guards.guards_of(&owner), vec![guard]);
        assert_eq!(guards.guards_of(&other), vec![guard], "it speaks for both");
        guards.forget(&owner);
        assert_eq!(owner_of(false), None);
        assert_eq!(GuardRegistry::open(folder.path()).guards_of(&other), vec![guard]);
        inside.kill().unwrap();
        inside.wait().unwrap();
        guards.record(&guard, &guard);
        assert_eq!(guards.owner_of(&guard, false), None, "a guard that speaks for itself");
    }
}
