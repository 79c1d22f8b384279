//! Ends of turns, and what a session was last heard of.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::kernel::{Fence, FileSession, Holder, ProcessId, RecordedProcess, Resource, Tick};
use tenure_gate::process;
use tokio::sync::RwLock;

use super::file_event_observer::FileEventListener;
use crate::app::App;

/// Those who ask share a turn; whoever lets go has one alone.
#[derive(Default)]
pub(super) struct ProcessLocks(Mutex<HashMap<RecordedProcess, Arc<RwLock<()>>>>);

impl ProcessLocks {
    pub(super) fn lock_of(&self, process: &RecordedProcess) -> Arc<RwLock<()>> {
        self.0.lock().entry(process.clone()).or_default().clone()
    }

    pub(super) fn forget(&self, process: &RecordedProcess) {
        self.0.lock().remove(process);
    }
}

/// The session that a hook spoke for last, of each process. In memory only: the ledger knows it to the second.
#[derive(Default)]
pub(super) struct LastActivity(Mutex<HashMap<RecordedProcess, Holder>>);

impl LastActivity {
    /// A hook of this process spoke for a session. Says whether it may have spoken for another one before.
    pub(super) fn record(&self, process: &RecordedProcess, session: &Holder) -> bool {
        let mut sessions = self.0.lock();
        let before = sessions.insert(process.clone(), session.clone());
        before.is_none_or(|before| before != *session)
    }

    pub(super) fn forget(&self, process: &RecordedProcess) {
        self.0.lock().remove(process);
    }
}

/// Notes that a hook spoke for a session. What guards of its process were told counts for the session before.
pub(super) fn record_activity(app: &App, process: &RecordedProcess, session: &Holder) {
    if app.files.last_activity.record(process, session) {
        app.files.grant_generations.invalidate(process);
    }
}

/// The session of this process that lives and was heard of last.
pub(super) fn last_session(app: &App, process: &ProcessId) -> Option<FileSession> {
    let noted = app.files.last_activity.0.lock().get(&(*process).into()).cloned();
    app.registrar.read(|state| {
        if let Some(session) = noted.and_then(|id| state.file_session(&id)) {
            return Some(session.clone());
        }
        state
            .file_sessions()
            .filter(|session| is_in_process(session, process))
            .max_by_key(|session| session.seen_at)
            .cloned()
    })
}

/// The session in whose name a process does something: of the nearest agent above it the one that it names, or of which something
/// was heard last. Nobody, if no agent that is known is above it. `line` is the process and all above it.
pub(super) fn find_session(app: &App, line: &[ProcessId], hint: Option<&str>) -> Option<Holder> {
    let sessions: Vec<FileSession> = app.registrar.read(|state| state.file_sessions().cloned().collect());
    for above in line {
        let is_its = |session: &&FileSession| session.parent.is_none() && is_in_process(session, above);
        let found: Vec<&FileSession> = sessions.iter().filter(is_its).collect();
        let named = hint.and_then(|hint| found.iter().find(|session| *session.session == *hint));
        let last = || found.iter().max_by_key(|session| session.seen_at);
        if let Some(session) = named.or_else(last) {
            return Some(session.id.clone());
        }
    }
    None
}

fn is_in_process(session: &FileSession, process: &ProcessId) -> bool {
    session.process.id().is_some_and(|own| own.is_same(process))
}

/// A process and all above it, itself first. It looks at processes.
pub(super) fn ancestry(pid: u32) -> Vec<ProcessId> {
    process::of(pid).ok().into_iter().chain(process::ancestors(pid)).collect()
}

/// The most that is remembered. What is forgotten counts as somebody else's.
const MAX_ENTRIES: usize = 100_000;

/// The process whose lease on a file ended last, since the server started.
#[derive(Default)]
pub(super) struct LastHolders(Mutex<HashMap<Resource, RecordedProcess>>);

impl LastHolders {
    fn is(&self, resource: &Resource, process: &RecordedProcess) -> bool {
        self.0.lock().get(resource) == Some(process)
    }
}

impl FileEventListener for LastHolders {
    fn lease_ended(&self, resource: &Resource, session: &FileSession, _: Tick) {
        let mut lasts = self.0.lock();
        if lasts.len() >= MAX_ENTRIES {
            lasts.clear();
        }
        lasts.insert(resource.clone(), session.process.clone());
    }
}

/// Whether somebody else than this process may have changed what these new leases are on, before they were there.
pub(super) fn may_have_changed(app: &App, leases: &[Fence], process: &RecordedProcess) -> bool {
    app.registrar.read(|state| {
        let is_its = |lease: &Fence| {
            state.lease(*lease).is_some_and(|lease| app.files.last_holders.is(lease.resource, process))
        };
        !leases.iter().all(is_its)
    })
}
