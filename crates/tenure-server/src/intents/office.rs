//! What the worker asks, for one in this process. The routes under `/api/v3/worker` ask the same.

use std::sync::Arc;

use tenure_api::{
    AskChanges, Changes, FinishSession, Guarded, KeepSessions, KeptSessions, LeaveGuard, Problem, SessionNow,
    SessionRuns, TakeGuard, TakeSession, WipeSessions, WipedSessions,
};
use tenure_core::kernel::orchestrator;

use super::worker;
use crate::app::App;
use crate::http::answer::Failure;

/// Where a worker in this process asks. It can be cloned.
#[derive(Clone)]
pub struct Office {
    app: Arc<App>,
}

/// What the worker asked for, or why it did not get it.
type Answer<T> = Result<T, Box<Problem>>;

impl Office {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { app }
    }

    /// Be the one worker, or stay it.
    pub async fn guard(&self, request: &TakeGuard) -> Answer<Guarded> {
        worker::guard(&self.app, &orchestrator(), request).await.map_err(problem)
    }

    /// Which sessions changed, waiting for one if the request says so.
    pub async fn changes(&self, request: &AskChanges) -> Answer<Changes> {
        worker::changes(&self.app, request).await.map_err(problem)
    }

    pub async fn take(&self, request: &TakeSession) -> Answer<SessionNow> {
        worker::take(&self.app, request).await.map_err(problem)
    }

    pub async fn running(&self, request: &SessionRuns) -> Answer<SessionNow> {
        worker::running(&self.app, request).await.map_err(problem)
    }

    pub async fn finish(&self, request: &FinishSession) -> Answer<SessionNow> {
        worker::finish(&self.app, request).await.map_err(problem)
    }

    /// The worker lives, and so do these sessions.
    pub async fn keep(&self, request: &KeepSessions) -> Answer<KeptSessions> {
        worker::keep(&self.app, request).await.map_err(problem)
    }

    /// The processes of these sessions were seen gone.
    pub async fn wipe(&self, request: &WipeSessions) -> Answer<WipedSessions> {
        worker::wipe(&self.app, request).await.map_err(problem)
    }

    pub async fn leave(&self, request: &LeaveGuard) -> Answer<()> {
        worker::leave(&self.app, request).await.map(drop).map_err(problem)
    }
}

fn problem(failure: Failure) -> Box<Problem> {
    failure.0
}
