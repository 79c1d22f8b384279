//! A change of the lease, of which everybody is told.

use std::sync::Arc;

use tenure_control::Held;

/// A change of the lease.
pub(super) struct Change {
    pub(super) event: LeaseEvent,
    /// As it is after the change; if it is over, as it was.
    pub(super) held: Held,
    pub(super) reason: Option<Arc<str>>,
}

/// What everybody is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseEvent {
    Acquired,
    Heartbeat,
    Released,
    Expired,
}

impl LeaseEvent {
    pub(super) const ALL: [LeaseEvent; 4] = [Self::Acquired, Self::Heartbeat, Self::Released, Self::Expired];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Heartbeat => "heartbeat",
            Self::Released => "released",
            Self::Expired => "expired",
        }
    }
}

impl Change {
    pub(super) fn is_active(&self) -> bool {
        matches!(self.event, LeaseEvent::Acquired | LeaseEvent::Heartbeat)
    }
}
