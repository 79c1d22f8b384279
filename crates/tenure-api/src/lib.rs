//! Wire types: requests, responses, problems and their codes, for the server and its clients alike.
//!
//! Names on the wire do not change. Fields may be added, so a client ignores unknown response fields; the
//! server rejects unknown request fields, because a caller relies on every field that it sends.

// What other crates and users rely on says what it is for.
#![warn(missing_docs)]

mod agent;
mod error_code;
mod event;
mod file;
mod intent;
mod lease;
mod problem;
mod request;
pub mod strict;
mod work;
mod worker;

pub use agent::{
    AgentEventDetails, AgentLease, AgentLeaseIds, AgentList, AgentReleaseResult, AgentStateReport, AgentView,
    AgentWait, ContentionEdge, ContentionGraph, ContentionNode, DigestIdentity, DigestRecovery,
    HeartbeatRejection, HeartbeatRenewal, HeartbeatResult, Manifest, ManifestIntent, ManifestObject,
    ManifestVerdict, PendingIntent, ReconcileResult, ReconciledLease, ResourceAccess, ResourceState,
    ResourceTouchReport, StateDigest, TouchResult,
};
pub use error_code::Code;
pub use event::ServerEvent;
pub use file::{
    AuditedWorktree, Blame, BlamedLine, BlockerReport, BlockerReportList, CommitReport, CommitResult,
    FileAcquireRequest, FileCaller, FileEventDetails, FileEventKind, FileEventReport,
    FileForceReleaseRequest, FileGiveRequest, FileOwner, FileSessionView, FileStatus, FileVerdict,
    FileVerdictKind, FileView, FileWaiter, FilesOverview, GrantGeneration, HeldFileView, StagedFilesRequest,
    UncommittedFile,
};
pub use intent::{AcceptedIntent, IntentRequest, IntentSessionList, IntentSessionView};
pub use lease::{
    ControlStatus, DenialView, Explanation, Lease, LeaseGrant, LeaseGrants, LeasePage, LeaseRenewal,
    LeaseResponse, LeaseState, Queue, Recall, Waiter,
};
pub use problem::Problem;
pub use request::{
    AcquireRequest, ApiTokenList, ApiTokenRequest, ApiTokenView, BatchAcquireRequest, CreatedApiToken,
    ModeChangeRequest, ReleaseRequest, RenewalRequest, RevocationRequest, RevokedApiToken, TransferRequest,
};
pub use work::{
    Budget, BudgetLimits, SpendPurpose, SpendResult, WorkClaimRequest, WorkDerivationRequest, WorkGrant,
    WorkReleaseRequest, WorkRenewalRequest, WorkResponse, WorkScope, WorkSpendRequest, WorkView,
};
pub use worker::{
    IntentSessionChanges, IntentSessionChangesRequest, IntentSessionFinishRequest, IntentSessionLeases,
    IntentSessionRenewal, IntentSessionRenewalRequest, IntentSessionRenewals, IntentSessionRunningReport,
    IntentSessionStatus, IntentSessionTakeRequest, IntentSessionWipeRequest, LeaderLockGrant,
    LeaderLockReleaseRequest, LeaderLockRequest, WipeResult,
};
