//! What goes over the wire: requests, answers, problems and their codes, for the server and its clients alike.
//!
//! Names on the wire do not change. Fields may be added, so whoever reads an answer ignores what it does not know;
//! the server refuses what it does not know, because a caller counts on what it asked for.

// What other crates and users rely on says what it is for.
#![warn(missing_docs)]

mod agent;
mod code;
mod control;
mod event;
mod file;
mod lease;
mod problem;
mod queue;
mod request;
mod session;
mod token;
mod work;
mod worker;

pub use agent::{
    AgentChange, AgentLease, AgentLeases, AgentView, AgentWait, Agents, Beat, Contention, ContentionEdge,
    ContentionNode, DigestIdentity, DigestRecovery, Heartbeat, Manifest, ManifestIntent, ManifestObject,
    PendingIntent, Reconciled, Rejected, ReleasedLeases, ReportState, ResourceState, StateDigest, Touch,
    Touched, TrueLease, Verdict, Wanted,
};
pub use code::Code;
pub use control::ControlStatus;
pub use event::ServerEvent;
pub use file::{
    AuditedTree, Blame, BlamedLine, BlockerReport, BlockerReports, CommitNote, FileAsk, FileChange,
    FileCommit, FileEventKind, FileForce, FileGive, FileNews, FileOwner, FileSpeaker, FileStaged,
    FileVerdict, FileView, FileWaiter, Files, HeldBy, LeftBy, OneFile, SessionOfAgent, Standing, VerdictKind,
};
pub use lease::{Granted, GrantedAll, Lease, LeaseState, OneLease, Page, Recall, Renewed};
pub use problem::Problem;
pub use queue::{Explanation, Queue, Refused, Waiter};
pub use request::{Acquire, AcquireAll, ChangeMode, CreateToken, Release, Renew, Revoke, Transfer};
pub use session::{IntentAccepted, IntentRequest, SessionView, Sessions};
pub use token::{CreatedToken, RevokedToken, Token, Tokens};
pub use work::{
    Bounds, Budget, ClaimWork, DeriveWork, GrantedWork, OneWork, Purpose, ReleaseWork, RenewWork, Scope,
    SpendWork, Spent, Work,
};
pub use worker::{
    AskChanges, Changes, FinishSession, Guarded, KeepSessions, KeptSession, KeptSessions, LeaveGuard,
    SessionNow, SessionRuns, TakeGuard, TakeSession, Taken, WipeSessions, WipedSessions,
};
