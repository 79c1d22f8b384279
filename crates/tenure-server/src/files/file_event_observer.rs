//! Hears of every event on the thread that tells everybody, before anybody is answered, and passes on what is about files.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{Event, Fence, FileEvent, FileSession, KernelState, Resource, Tick};
use tenure_ledger::Seq;
use tenure_registrar::runtime::Observer;

/// Somebody who must know first what happens to files. Whoever listens in this way must be quick.
pub(crate) trait FileEventListener: Send + Sync {
    /// A lease on a file began.
    fn lease_began(&self) {}

    /// A lease of a session is over.
    fn lease_ended(&self, resource: &Resource, session: &FileSession, at: Tick);

    /// A session is over. Its leases ended before.
    fn session_ended(&self, _session: &FileSession) {}
}

/// Passes on what happens to files to whoever must know it first.
pub(crate) struct FileEventObserver {
    listeners: Vec<Arc<dyn FileEventListener>>,
    /// Who else is told of everything, first.
    next: Arc<dyn Observer>,
}

impl FileEventObserver {
    pub(crate) fn new(listeners: Vec<Arc<dyn FileEventListener>>, next: Arc<dyn Observer>) -> Arc<Self> {
        Arc::new(Self { listeners, next })
    }

    fn ends(&self, lease: Fence, at: Tick, before: &KernelState) {
        let Some(lease) = before.lease(lease) else { return };
        if let Some(session) = before.file_session(lease.holder) {
            self.listeners.iter().for_each(|listener| listener.lease_ended(lease.resource, session, at));
        }
    }
}

impl Observer for FileEventObserver {
    fn before_event(&self, seq: Seq, event: &Event, before: &KernelState) {
        self.next.before_event(seq, event, before);
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

    fn batch_published(&self, took: Duration) {
        self.next.batch_published(took);
    }
}
