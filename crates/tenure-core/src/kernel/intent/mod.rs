//! Intents: what somebody wants to be carried out, and what has become of it.
//!
//! The API accepts an intent and says which session it became. One worker, who holds the guard, takes sessions,
//! holds their leases, and carries them out. Both go through the same kernel, so that a session and its leases
//! never disagree: a session that lost a lease ends in the decision that ended the lease, and one that ends gives
//! back what it holds.

mod command;
mod decide;
mod event;
mod session;
mod session_end;
mod target;

pub use command::{AcceptIntent, IntentCommand, IntentOutcome, KeepAliveOutcome, TakeIntentSession};
pub(super) use decide::decide;
pub use event::{IntentAcceptance, IntentEvent};
pub use session::{IntentKey, IntentSession, IntentSessionEnd, IntentSessionState};
pub(super) use session_end::{IntentDecision, end_orphaned_sessions, record_lost_lease, sweep_sessions};
pub(crate) use target::IntentTargetKind;
pub use target::{
    Intent, IntentTarget, LEADER_LOCK, ORCHESTRATOR_PRINCIPAL, leader_lock_resource, orchestrator_principal,
    tuner_resource, tuner_slot,
};
