//! Decides what happens to leases: [`decide`] says which events a [`Command`] leads to, and
//! [`State::apply`] records them. Nothing else changes the state.

mod agent;
mod agreement;
mod answer;
mod assign;
mod choice;
mod codec;
mod command;
mod deadlock;
mod decide;
mod descent;
mod draft;
mod dying;
mod ending;
mod event;
mod file;
mod giving;
mod granting;
mod intent;
mod limits;
mod lining_up;
mod mode;
mod name;
mod policy;
mod serve;
mod squatting;
mod state;
mod value;
mod want;
mod work;

pub use agent::{
    AgentAnswer, AgentCommand, AgentEvent, Declare, Pending, PendingEnd, Phase, Pulse, Rank, Remembered,
    Report,
};
pub use answer::{Answer, Decision, End, Refusal};
pub use codec::{DecodeError, Stamp, decode, encode, encode_to};
pub use command::{Acquire, ChangeMode, Claim, Command, Contention};
pub use decide::decide;
pub use event::{Cause, ClockReading, Event, Issued, Queued, WaitEnd};
pub use file::{
    Blocked, Contended, FILE_LEASE, FILES, FileAcquire, FileAnswer, FileCommand, FileEnd, FileEvent,
    FileSession, FileTicket, FileWant, HeldFile, Introduction, LeftFile, Owner, Sign, TicketEnd, files,
};
pub use granting::Granting;
pub use intent::{
    Accept, Accepted, GUARD, Intent, IntentAnswer, IntentCommand, IntentEvent, IntentKey, Kept, ORCHESTRATOR,
    Session, SessionEnd, SessionState, Take, Target, guard, orchestrator, slot_of, tuner,
};
pub use limits::{
    AGENT_KEPT, DESCENDANTS, DESCENT, ENDED_KEPT, FILE_BYTES_AT_ONCE, FILE_NAMES_AT_ONCE, FILE_REPORTS_KEPT,
    FILE_SESSIONS, FILE_TICKETS, FILES_AT_ONCE, HOLDER_KEPT, KEY_KEPT, LEFT_FILES_KEPT, Limits,
    RESTART_GRACE, SESSION_BYTES_KEPT, SESSION_KEPT, SESSIONS_AT_ONCE, SESSIONS_KEPT,
};
pub use mode::{Mode, Modes};
pub use name::{Holder, Labels, Principal, Resource};
pub use state::{
    Agent, Anchor, ClockState, EndedLease, HashKey, LeaseView, Misfit, RestoreError, Snapshot, State, Terms,
    TicketView, Work,
};
pub use value::{Digest, Fence, LeaseIdText, LedgerTag, Nonce, RequestKey, Span, TICK_RATE_HZ, Tick, Ticket};
pub use want::{Others, Want};
pub use work::{ClaimWork, Derive, Spend, WorkCommand, WorkEvent};
