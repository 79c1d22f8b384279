//! Whom the worker asks: the server that it is part of, or one elsewhere. Both answer alike.

use tenure_api::{
    Code, IntentSessionChanges, IntentSessionChangesRequest, IntentSessionFinishRequest,
    IntentSessionRenewalRequest, IntentSessionRenewals, IntentSessionRunningReport, IntentSessionStatus,
    IntentSessionTakeRequest, IntentSessionWipeRequest, LeaderLockGrant, LeaderLockReleaseRequest,
    LeaderLockRequest, Problem, WipeResult,
};
use tenure_client::{Client, Error};
use tenure_server::WorkerApi;

/// Who is asked.
#[derive(Clone)]
pub enum ServerHandle {
    /// This very process.
    InProcess(WorkerApi),
    /// A server.
    Remote(Client),
}

/// Why there is no answer. The variants differ by what the worker does next.
#[derive(Debug)]
pub enum WorkerError {
    /// Nobody answers, or not now: ask again.
    Transient(String),
    /// The guard is somebody else's, or nobody's: end everything.
    LeadershipLost(String),
    /// Somebody has it.
    Held(Box<Problem>),
    /// Asking again would lead to the same.
    Rejected(Box<Problem>),
}

/// One method for each request: its name here and in the office, and in the client.
macro_rules! requests {
    ($($(#[$documentation:meta])* $name:ident = $remote:ident($request:ty) -> $answer:ty;)*) => {
        impl ServerHandle {
            $($(#[$documentation])*
            pub async fn $name(&self, request: &$request) -> Result<$answer, WorkerError> {
                match self {
                    Self::InProcess(worker_api) => worker_api.$name(request).await.map_err(of_problem),
                    Self::Remote(client) => client.$remote(request).await.map_err(of_error),
                }
            })*
        }
    };
}

requests! {
    /// Be the one worker, or stay it.
    acquire_leader_lock = worker_acquire_leader_lock(LeaderLockRequest) -> LeaderLockGrant;
    /// Which sessions changed.
    changed_sessions = worker_changed_sessions(IntentSessionChangesRequest) -> IntentSessionChanges;
    /// A session with its leases.
    take_session = worker_take_session(IntentSessionTakeRequest) -> IntentSessionStatus;
    /// Its pipeline runs.
    report_running = worker_report_running(IntentSessionRunningReport) -> IntentSessionStatus;
    /// Its pipeline is gone.
    finish_session = worker_finish_session(IntentSessionFinishRequest) -> IntentSessionStatus;
    /// The worker lives, and so do these sessions.
    renew_leases = worker_renew_leases(IntentSessionRenewalRequest) -> IntentSessionRenewals;
    /// The processes of these sessions were seen gone.
    wipe_sessions = worker_wipe_sessions(IntentSessionWipeRequest) -> WipeResult;
    /// The worker ends.
    release_leader_lock = worker_release_leader_lock(LeaderLockReleaseRequest) -> ();
}

impl WorkerError {
    /// For people.
    pub fn message(&self) -> String {
        match self {
            Self::Transient(text) | Self::LeadershipLost(text) => text.clone(),
            Self::Held(problem) | Self::Rejected(problem) => {
                format!("{} ({})", problem.detail, problem.code.as_str())
            }
        }
    }
}

fn of_error(error: Error) -> WorkerError {
    match error {
        Error::Problem(problem) => of_problem(problem),
        other => WorkerError::Transient(other.to_string()),
    }
}

fn of_problem(problem: Box<Problem>) -> WorkerError {
    match problem.code {
        Code::GuardLost => WorkerError::LeadershipLost(problem.detail),
        Code::Held => WorkerError::Held(problem),
        code if code.is_retryable() => {
            WorkerError::Transient(format!("{} ({})", problem.detail, problem.code.as_str()))
        }
        _ => WorkerError::Rejected(problem),
    }
}
