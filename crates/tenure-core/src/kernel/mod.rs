//! The kernel: [`decide`] turns a [`Command`] into events and an outcome, and [`KernelState::apply`] records the events.
//! Nothing else changes the state.

mod admission;
mod agent;
mod api_decisions;
mod codec;
mod command;
mod decide;
mod event;
mod file;
mod intent;
mod lease;
mod outcome;
mod reducer_consistency;
mod state;
mod work;

pub use admission::AdmissionLevel;
pub use agent::{
    AgentCommand, AgentEvent, AgentOutcome, AgentPhase, AgentRank, AgentRecord, AgentReport, AgentWait,
    AgentWaitEnd, DeclareManifest, HeartbeatOutcome, ReportedAgentState,
};
pub use codec::{DecodeError, EncodeContext, decode, encode, encode_to};
pub use command::{Acquire, ChangeMode, Command, ContentionPolicy, LeaseCredential};
pub use decide::decide;
pub use event::{ClockReading, Event, IssuedLease, LeaseTerms, QueuedAcquire, RevocationCause, WaitEnd};
pub use file::{
    BlockedReport, ContentionNotice, FILE_LEASE_TTL, FILES_PRINCIPAL, FileAcquire, FileCommand, FileEvent,
    FileOutcome, FileOwner, FileRequest, FileSession, FileSessionActivity, FileSessionEnd, FileSessionInfo,
    HeldFile, RetryTicket, RetryTicketEnd, UncommittedFile, files_principal,
};
pub use intent::{
    AcceptIntent, Intent, IntentAcceptance, IntentCommand, IntentEvent, IntentKey, IntentOutcome,
    IntentSession, IntentSessionEnd, IntentSessionState, IntentTarget, KeepAliveOutcome, LEADER_LOCK,
    ORCHESTRATOR_PRINCIPAL, TakeIntentSession, leader_lock_resource, orchestrator_principal, tuner_resource,
    tuner_slot,
};
pub use lease::lease_request::{Alternatives, LeaseRequest};
pub use outcome::{CommandOutcome, Decision, LeaseEnd, Rejection};
pub use state::{
    ApplyError, ClockAnchor, ClockState, ComparableState, EndedLease, HashSeed, KernelState, LeaseView,
    QueueTicketView, Removed, RestoreError,
};
pub use work::{ClaimWork, DeriveLease, SpendBudget, WorkCommand, WorkEvent, WorkLease};

pub use crate::value::{
    AGENT_RETENTION, BootId, ENDED_LEASE_RETENTION, Fence, HOLDER_RETENTION, Holder,
    INTENT_SESSION_RETENTION, IdempotencyKey, KEY_RETENTION, Labels, LeaseIdText, LeaseMode, LedgerTag,
    Limits, MAX_BLOCKED_REPORTS, MAX_DERIVATION_DEPTH, MAX_DESCENDANTS, MAX_ENDED_INTENT_SESSION_BYTES,
    MAX_ENDED_INTENT_SESSIONS, MAX_FILE_NAME_BYTES_PER_COMMAND, MAX_FILE_NAMES_PER_COMMAND,
    MAX_FILE_SESSIONS, MAX_FILES_PER_COMMAND, MAX_INTENT_SESSIONS_PER_COMMAND, MAX_RETRY_TICKETS_PER_SESSION,
    MAX_UNCOMMITTED_FILES, ModeSet, Nonce, Principal, ProcessId, RESTART_GRACE, RecordedProcess,
    RequestDigest, Resource, TICK_RATE_HZ, Tick, TickDuration, Ticket,
};
