//! Identities of working trees and callers.

use tenure_core::kernel::{FileSession, Holder};
use tenure_gate::process;
use tenure_gate::process::ProcessId;

use crate::app::App;

/// `boot:namespace:pid:started:user`.
pub(super) fn process_key(process: &ProcessId) -> String {
    let ProcessId { boot, namespace, pid, started, user } = process;
    format!("{boot}:{namespace}:{pid}:{started}:{user}")
}

/// The process in such a text.
pub(super) fn parse_process_key(text: &str) -> Option<ProcessId> {
    let mut parts = text.split(':');
    let process = ProcessId {
        boot: parts.next()?.to_owned(),
        namespace: parts.next()?.parse().ok()?,
        pid: parts.next()?.parse().ok()?,
        started: parts.next()?.parse().ok()?,
        user: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(process)
}

/// The session in whose name a process does something: of the nearest agent above it the one that it names, or of which something
/// was heard last. Nobody, if no agent that is known is above it. `line` is the process and all above it.
pub(super) fn find_session(app: &App, line: &[ProcessId], hint: Option<&str>) -> Option<Holder> {
    let sessions: Vec<FileSession> = app.registrar.read(|state| state.file_sessions().cloned().collect());
    for above in line {
        let is_its = |process: &str| parse_process_key(process).is_some_and(|process| process.is_same(above));
        let found: Vec<&FileSession> =
            sessions.iter().filter(|session| session.parent.is_none() && is_its(&session.process)).collect();
        let named = hint.and_then(|hint| found.iter().find(|session| *session.session == *hint));
        let last = || found.iter().max_by_key(|session| session.seen_at);
        if let Some(session) = named.or_else(last) {
            return Some(session.id.clone());
        }
    }
    None
}

/// A process and all above it, itself first. It looks at processes.
pub(super) fn ancestry(pid: u32) -> Vec<ProcessId> {
    ProcessId::of(pid).ok().into_iter().chain(process::ancestors(pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_key_parses_back_to_the_process() {
        let own = ProcessId::own().expect("this process");
        assert_eq!(parse_process_key(&process_key(&own)), Some(own));
        assert_eq!(parse_process_key("a:1:2:3"), None);
        assert_eq!(parse_process_key("a:1:2:3:4:5"), None);
    }
}
