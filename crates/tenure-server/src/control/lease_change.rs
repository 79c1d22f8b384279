//! A change of the lease, of which everybody is told.

use std::sync::Arc;

use tenure_control::ControlLease;

pub(super) struct LeaseChange {
    pub(super) event: LeaseEventKind,
    /// As it is after the change; if it is over, as it was.
    pub(super) lease: ControlLease,
    pub(super) reason: Option<Arc<str>>,
}

tenure_core::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum LeaseEventKind {
        Acquired = "acquired",
        Heartbeat = "heartbeat",
        Released = "released",
        Expired = "expired",
    }
}

impl LeaseChange {
    pub(super) fn is_active(&self) -> bool {
        matches!(self.event, LeaseEventKind::Acquired | LeaseEventKind::Heartbeat)
    }
}
