//! Decides what happens to leases: [`decide`] says which events a [`Command`] leads to, and
//! [`KernelState::apply`] records them. Nothing else changes the state.

mod admission;
mod agent;
mod api_decisions;
mod assignment;
mod codec;
mod command;
mod deadlock;
mod decide;
mod decision_builder;
mod event;
mod file;
mod intent;
mod lease_request;
mod limits;
mod mode;
mod newtypes;
mod outcome;
mod process_id;
mod reducer_consistency;
mod serve_waiters;
mod state;
mod work;

pub use admission::AdmissionLevel;
pub use agent::{
    AgentCommand, AgentEvent, AgentOutcome, AgentPhase, AgentRank, AgentReport, AgentWait, AgentWaitEnd,
    DeclareManifest, HeartbeatOutcome, ReportedAgentState,
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
pub use lease_request::{Alternatives, LeaseRequest};
pub use limits::{
    AGENT_RETENTION, ENDED_LEASE_RETENTION, HOLDER_RETENTION, INTENT_SESSION_RETENTION, KEY_RETENTION,
    Limits, MAX_BLOCKED_REPORTS, MAX_DERIVATION_DEPTH, MAX_DESCENDANTS, MAX_ENDED_INTENT_SESSION_BYTES,
    MAX_ENDED_INTENT_SESSIONS, MAX_FILE_NAME_BYTES_PER_COMMAND, MAX_FILE_NAMES_PER_COMMAND,
    MAX_FILE_SESSIONS, MAX_FILES_PER_COMMAND, MAX_INTENT_SESSIONS_PER_COMMAND, MAX_RETRY_TICKETS_PER_SESSION,
    MAX_UNCOMMITTED_FILES, RESTART_GRACE,
};
pub use mode::{LeaseMode, ModeSet};
pub use newtypes::{
    Fence, Holder, IdempotencyKey, Labels, LeaseIdText, LedgerTag, Nonce, Principal, RequestDigest, Resource,
    TICK_RATE_HZ, Tick, TickDuration, Ticket,
};
pub use outcome::{CommandOutcome, Decision, LeaseEnd, Rejection};
pub use process_id::{BootId, ProcessId, RecordedProcess};
pub use state::{
    AgentRecord, ApplyError, ClockAnchor, ClockState, ComparableState, EndedLease, HashSeed, KernelState,
    LeaseView, QueueTicketView, RestoreError, WorkLease,
};
pub use work::{ClaimWork, DeriveLease, SpendBudget, WorkCommand, WorkEvent};
