//! What the worker asks, for one in this process. The routes under `/api/v3/worker` ask the same.

use std::sync::Arc;

use tenure_api::{
    AskChanges, Changes, Code, FinishSession, Guarded, KeepSessions, KeptSessions, LeaveGuard, Problem,
    SessionNow, SessionRuns, TakeGuard, TakeSession, WipeSessions, WipedSessions,
};

use crate::app::App;

/// Where a worker in this process asks. It can be cloned.
#[derive(Clone)]
pub struct Office {
    #[expect(dead_code, reason = "asked by what comes next")]
    app: Arc<App>,
}

/// Why the worker did not get what it asked for.
type Answer<T> = Result<T, Box<Problem>>;

impl Office {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { app }
    }

    /// Be the one worker, or stay it.
    pub async fn guard(&self, _request: &TakeGuard) -> Answer<Guarded> {
        missing()
    }

    /// Which sessions changed, waiting for one if the request says so.
    pub async fn changes(&self, _request: &AskChanges) -> Answer<Changes> {
        missing()
    }

    /// A session with its leases.
    pub async fn take(&self, _request: &TakeSession) -> Answer<SessionNow> {
        missing()
    }

    /// Its pipeline runs.
    pub async fn running(&self, _request: &SessionRuns) -> Answer<SessionNow> {
        missing()
    }

    /// Its pipeline is gone.
    pub async fn finish(&self, _request: &FinishSession) -> Answer<SessionNow> {
        missing()
    }

    /// The worker lives, and so do these sessions.
    pub async fn keep(&self, _request: &KeepSessions) -> Answer<KeptSessions> {
        missing()
    }

    /// The processes of these sessions were seen gone.
    pub async fn wipe(&self, _request: &WipeSessions) -> Answer<WipedSessions> {
        missing()
    }

    /// The worker ends.
    pub async fn leave(&self, _request: &LeaveGuard) -> Answer<()> {
        missing()
    }
}

fn missing<T>() -> Answer<T> {
    Err(Box::new(Problem::new(Code::Internal, "not built yet")))
}
