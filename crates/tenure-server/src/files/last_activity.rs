//! Ends of turns, and what a session was last heard of.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::kernel::{Fence, FileSession, Holder, Resource, Tick};
use tenure_gate::process::ProcessId;
use tokio::sync::RwLock;

use super::file_event_observer::FileEventListener;
use super::process_identity;
use crate::app::App;

/// Those who ask share a turn; whoever lets go has one alone.
#[derive(Default)]
pub(super) struct ProcessLocks(Mutex<HashMap<Arc<str>, Arc<RwLock<()>>>>);

impl ProcessLocks {
    pub(super) fn lock_of(&self, process: &Arc<str>) -> Arc<RwLock<()>> {
        self.0.lock().entry(process.clone()).or_default().clone()
    }

    pub(super) fn forget(&self, process: &str) {
        self.0.lock().remove(process);
    }
}

/// The session that a hook spoke for last, of each process. In memory only: the ledger knows it to the second.
#[derive(Default)]
pub(super) struct LastActivity(Mutex<HashMap<Arc<str>, Holder>>);

impl LastActivity {
    /// A hook of this process spoke for a session. Says whether it may have spoken for another one before.
    pub(super) fn record(&self, process: &Arc<str>, session: &Holder) -> bool {
        let mut sessions = self.0.lock();
        let before = sessions.insert(process.clone(), session.clone());
        before.is_none_or(|before| before != *session)
    }

    pub(super) fn forget(&self, process: &str) {
        self.0.lock().remove(process);
    }
}

/// Notes that a hook spoke for a session. What guards of its process were told counts for the session before.
pub(super) fn record_activity(app: &App, process: &Arc<str>, session: &Holder) {
    if app.files.last_activity.record(process, session) {
        app.files.grant_generations.invalidate(process);
    }
}

/// The session of this process that lives and was heard of last.
pub(super) fn last_session(app: &App, process: &ProcessId) -> Option<FileSession> {
    let text: Arc<str> = process_identity::process_key(process).into();
    let noted = app.files.last_activity.0.lock().get(&text).cloned();
    app.registrar.read(|state| {
        if let Some(session) = noted.and_then(|id| state.file_session(&id)) {
            return Some(session.clone());
        }
        let is_its = |session: &&FileSession| {
            process_identity::parse_process_key(&session.process).is_some_and(|other| other.is_same(process))
        };
        state.file_sessions().filter(is_its).max_by_key(|session| session.seen_at).cloned()
    })
}

/// The most that is remembered. What is forgotten counts as somebody else's.
const MAX_ENTRIES: usize = 100_000;

/// The process whose lease on a file ended last, since the server started.
#[derive(Default)]
pub(super) struct LastHolders(Mutex<HashMap<Resource, Arc<str>>>);

impl LastHolders {
    fn is(&self, resource: &Resource, process: &str) -> bool {
        let holders = self.0.lock();
        holders.get(resource).is_some_and(|last| **last == *process)
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
pub(super) fn may_have_changed(app: &App, leases: &[Fence], process: &str) -> bool {
    app.registrar.read(|state| {
        let is_its = |lease: &Fence| {
            state.lease(*lease).is_some_and(|lease| app.files.last_holders.is(lease.resource, process))
        };
        !leases.iter().all(is_its)
    })
}
