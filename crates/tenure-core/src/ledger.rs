//! What a ledger holds, seen from a reducer: records in an order. How they are kept durable is the
//! business of another crate.
// Programs outside this workspace use this: what it offers says what it is for.
#![warn(missing_docs)]

/// One event as it stands in the ledger: its type, who caused it, and its payload as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventRecord {
    /// `lease.issued`, `wait.queued`, …: what stands before the dot says which reducer it belongs to.
    pub event_type: String,
    /// The session in which it came about; for audit.
    pub session_id: String,
    /// Who caused it. For `lease.released` this must be the holder.
    pub actor_id: String,
    /// A protobuf message; see `proto/tenure.proto`.
    pub payload: Vec<u8>,
}

impl EventRecord {
    /// A record of `event_type`, caused by `actor_id` in `session_id`.
    pub fn new(
        event_type: impl Into<String>,
        session_id: impl Into<String>,
        actor_id: impl Into<String>,
        payload: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            event_type: event_type.into(),
            session_id: session_id.into(),
            actor_id: actor_id.into(),
            payload: payload.into(),
        }
    }
}
