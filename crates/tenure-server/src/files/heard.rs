//! Which session of a process was heard of last: a guard that is told no name speaks for that one.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::kernel::{FileSession, Holder};
use tenure_gate::process::Process;

use super::identity;
use crate::app::App;

/// The session that a hook spoke for last, of each process. In memory only: the ledger knows it to the second.
#[derive(Default)]
pub(super) struct LastHeard(Mutex<HashMap<Arc<str>, Holder>>);

impl LastHeard {
    /// A hook of this process spoke for a session. Says whether it may have spoken for another one before.
    pub(super) fn note(&self, process: &Arc<str>, session: &Holder) -> bool {
        let mut heard = self.0.lock();
        let before = heard.insert(process.clone(), session.clone());
        before.is_none_or(|before| before != *session)
    }

    pub(super) fn forget(&self, process: &str) {
        self.0.lock().remove(process);
    }
}

/// Notes that a hook spoke for a session. What guards of its process were told counts for the session before.
pub(super) fn note(app: &App, process: &Arc<str>, session: &Holder) {
    if app.files.heard.note(process, session) {
        app.files.standings.change(process);
    }
}

/// The session of this process that lives and was heard of last.
pub(super) fn last(app: &App, process: &Process) -> Option<FileSession> {
    let text: Arc<str> = identity::text_of(process).into();
    let noted = app.files.heard.0.lock().get(&text).cloned();
    app.registrar.read(|state| {
        if let Some(session) = noted.and_then(|id| state.file_session(&id)) {
            return Some(session.clone());
        }
        let is_its = |session: &&FileSession| {
            identity::process_in(&session.process).is_some_and(|other| other.is_same(process))
        };
        state.file_sessions().filter(is_its).max_by_key(|session| session.seen_at).cloned()
    })
}
