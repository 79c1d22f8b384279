//! Guards, and the owners that they speak for: what an owner had is free only when nothing of its guards has it open any more.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tenure_api::GrantGeneration;
use tenure_core::kernel::{FileSession, Holder, ProcessId, RecordedProcess, Resource, Tick};
use tenure_host::process;
use tenure_host::process::{Liveness, open_for_writing};

use super::{FileEventListener, FilesApi};
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

/// Stands in the place of a process for all of them: its mark changes when a session gets a file.
fn any() -> RecordedProcess {
    RecordedProcess::default()
}

/// The marks of all processes that a guard has asked for.
pub(crate) struct GrantGenerations {
    folder: PathBuf,
    files: Mutex<HashMap<RecordedProcess, GenerationFile>>,
}

struct GenerationFile {
    path: PathBuf,
    /// Kept open: whoever reads it reads this one, whatever becomes of its name.
    file: File,
    number: u64,
}

impl GrantGenerations {
    /// What an earlier server left behind counts no longer, and whoever still reads it finds that out.
    pub(super) fn open(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for old in entries.map(|entry| entry.path()) {
            // A reader sees that the file has no name any more.
            let _ = fs::remove_file(old);
        }
        Self { folder: folder.to_owned(), files: Mutex::default() }
    }

    /// The mark of a process. Nothing where none can be made: then a guard asks each time. It writes to the disk.
    pub(super) fn generation_of(&self, process: &RecordedProcess) -> Option<GrantGeneration> {
        let mut marks = self.files.lock();
        if !marks.contains_key(process) {
            let mark = self.make(process).ok()?;
            marks.insert(process.clone(), mark);
        }
        let mark = marks.get(process)?;
        Some(GrantGeneration { file: mark.path.to_str()?.to_owned(), mark: mark.number })
    }

    /// The mark that changes when any session gets a file. To be asked while the state is read, and once before, because it may
    /// write to the disk.
    pub(super) fn generation_of_any(&self) -> Option<GrantGeneration> {
        self.generation_of(&any())
    }

    /// Whether guards of this process rely on anything.
    pub(super) fn is_tracked(&self, process: &RecordedProcess) -> bool {
        self.files.lock().contains_key(process)
    }

    /// Nobody relies any longer on what this process was granted before.
    pub(super) fn invalidate(&self, process: &RecordedProcess) {
        let mut marks = self.files.lock();
        let Some(mark) = marks.get_mut(process) else { return };
        mark.number = mark.number.wrapping_add(1);
        if mark.file.write_all_at(&mark.number.to_le_bytes(), 0).is_err() {
            // A mark that cannot be changed is taken away: that is seen too.
            let _ = fs::remove_file(&mark.path);
            marks.remove(process);
        }
    }

    pub(super) fn remove(&self, process: &RecordedProcess) {
        self.invalidate(process);
        if let Some(mark) = self.files.lock().remove(process) {
            let _ = fs::remove_file(mark.path);
        }
    }

    fn make(&self, process: &RecordedProcess) -> io::Result<GenerationFile> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.folder.join(blake3::hash(process.to_string().as_bytes()).to_hex().as_str());
        let mut options = File::options();
        let file = options.create_new(true).read(true).write(true).mode(0o600).open(&path)?;
        // From anywhere: no number of an earlier file of this name comes again.
        let number = getrandom::u64().map_err(io::Error::other)?;
        file.write_all_at(&number.to_le_bytes(), 0)?;
        Ok(GenerationFile { path, file, number })
    }
}

impl FileEventListener for GrantGenerations {
    fn lease_began(&self) {
        self.invalidate(&any());
    }

    fn lease_ended(&self, _: &Resource, session: &FileSession, _: Tick) {
        self.invalidate(&session.process);
    }

    fn session_ended(&self, session: &FileSession) {
        self.invalidate(&session.process);
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::kernel::FileSessionInfo;

    use super::*;

    #[test]
    fn a_guard_is_found_for_each_agent_that_was_started_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let guards = GuardRegistry::open(folder.path());
        let guard = process::own().unwrap();
        let agents = [1, 2].map(|later| ProcessId { started: guard.started + later, ..guard });
        agents.iter().for_each(|agent| guards.record(agent, &guard));
        assert_eq!(agents.map(|agent| guards.guards_of(&agent)), [[guard], [guard]]);
    }

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

    fn process(text: &str) -> RecordedProcess {
        RecordedProcess::parse(text).unwrap()
    }

    fn session(process: &RecordedProcess) -> FileSession {
        let id = Holder::parse("claude/one").unwrap();
        FileSession::begin(&FileSessionInfo::new(id, process.clone()), Tick(0))
    }

    fn read(standing: &GrantGeneration) -> Option<u64> {
        let bytes: [u8; 8] = fs::read(&standing.file).ok()?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    // S4-15
    #[test]
    fn a_generation_changes_when_its_process_loses_a_lease() {
        let folder = tempfile::tempdir().unwrap();
        let standings = GrantGenerations::open(folder.path());
        let (one, other) = (process("one"), process("other"));
        let before = standings.generation_of(&one).unwrap();
        let beside = standings.generation_of(&other).unwrap();
        assert_eq!(read(&before), Some(before.mark));
        assert_eq!(standings.generation_of(&one), Some(before.clone()), "asked again, it is the same");
        standings.lease_ended(&Resource::parse("FILE:tree/a").unwrap(), &session(&one), Tick(1));
        assert_ne!(read(&before), Some(before.mark));
        assert_eq!(read(&beside), Some(beside.mark), "somebody else's stays");
        let after = standings.generation_of(&one).unwrap();
        assert_eq!(read(&after), Some(after.mark));
        standings.remove(&process("one"));
        assert_eq!(read(&after), None);
    }

    // H2
    #[test]
    fn a_granted_lease_changes_the_generation_of_any_session() {
        let folder = tempfile::tempdir().unwrap();
        let standings = GrantGenerations::open(folder.path());
        let before = standings.generation_of_any().unwrap();
        assert_eq!(read(&before), Some(before.mark));
        standings.invalidate(&process("one"));
        assert_eq!(read(&before), Some(before.mark));
        standings.lease_began();
        assert_ne!(read(&before), Some(before.mark));
    }

    #[test]
    fn generations_of_an_earlier_server_are_invalid() {
        let folder = tempfile::tempdir().unwrap();
        let standing = GrantGenerations::open(folder.path()).generation_of(&process("one")).unwrap();
        let reader = File::open(&standing.file).unwrap();
        let next = GrantGenerations::open(folder.path());
        assert_eq!(rustix::fs::fstat(&reader).unwrap().st_nlink, 0, "who reads on sees that it is gone");
        assert_ne!(next.generation_of(&process("one")).unwrap().mark, standing.mark);
    }
}
