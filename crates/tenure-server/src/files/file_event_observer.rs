//! Observes the feed and passes file events to the parts of the files API that must know them before any client does.

use std::sync::Arc;

use tenure_core::kernel::{Event, Fence, FileEvent, FileSession, KernelState, Resource, Tick};
use tenure_ledger::Seq;
use tenure_registrar::runtime::Observer;

use super::FilesApi;

/// Receives file events on the thread that publishes them, before any client learns of them. It must be quick.
pub(super) trait FileEventListener: Send + Sync {
    /// A lease on a file began.
    fn lease_began(&self) {}

    /// A lease of a session is over.
    fn lease_ended(&self, resource: &Resource, session: &FileSession, at: Tick);

    /// A session is over. Its leases ended before.
    fn session_ended(&self, _session: &FileSession) {}
}

struct FileEventObserver {
    listeners: [Arc<dyn FileEventListener>; 3],
}

impl FilesApi {
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        let (generations, holders) = (self.grant_generations.clone(), self.last_holders.clone());
        Arc::new(FileEventObserver { listeners: [generations, holders, self.audit.recently_ended.clone()] })
    }
}

impl FileEventObserver {
    fn ends(&self, lease: Fence, at: Tick, before: &KernelState) {
        let Some(lease) = before.lease(lease) else { return };
        if let Some(session) = before.file_session(lease.holder) {
            self.listeners.iter().for_each(|listener| listener.lease_ended(lease.resource, session, at));
        }
    }
}

impl Observer for FileEventObserver {
    fn before_event(&self, _: Seq, event: &Event, before: &KernelState) {
        match event {
            Event::Issued(issued) if issued.resource.as_str().starts_with("FILE:") => {
                self.listeners.iter().for_each(|listener| listener.lease_began());
            }
            Event::Released { lease, at, .. }
            | Event::Expired { lease, at }
            | Event::Revoked { lease, at, .. } => self.ends(*lease, *at, before),
            Event::File(event) => {
                if let FileEvent::Ended { session, .. } = &**event
                    && let Some(session) = before.file_session(session)
                {
                    self.listeners.iter().for_each(|listener| listener.session_ended(session));
                }
            }
            _ => {}
        }
    }
}
