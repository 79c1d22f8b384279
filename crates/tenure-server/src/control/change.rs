//! A change of the lease, of which everybody is told.

use std::sync::Arc;

use tenure_control::Held;

pub(super) struct Change {
    pub(super) event: LeaseEvent,
    /// As it is after the change; if it is over, as it was.
    pub(super) held: Held,
    pub(super) reason: Option<Arc<str>>,
}

tenure_core::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum LeaseEvent {
        Acquired = "acquired",
        Heartbeat = "heartbeat",
        Released = "released",
        Expired = "expired",
    }
}

impl Change {
    pub(super) fn is_active(&self) -> bool {
        matches!(self.event, LeaseEvent::Acquired | LeaseEvent::Heartbeat)
    }
}
