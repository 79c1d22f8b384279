//! What the worker asks, for one in this process. The routes under `/api/v3/worker` ask the same.

use std::sync::Arc;

use tenure_api::{
    IntentSessionChanges, IntentSessionChangesRequest, IntentSessionFinishRequest,
    IntentSessionRenewalRequest, IntentSessionRenewals, IntentSessionRunningReport, IntentSessionStatus,
    IntentSessionTakeRequest, IntentSessionWipeRequest, LeaderLockGrant, LeaderLockReleaseRequest,
    LeaderLockRequest, Problem, WipeResult,
};
use tenure_core::kernel::orchestrator_principal;

use super::worker;
use crate::app::App;
use crate::http::response::HttpError;

/// Where a worker in this process asks. It can be cloned.
#[derive(Clone)]
pub struct WorkerApi {
    app: Arc<App>,
}

/// What the worker asked for, or why it did not get it.
type Answer<T> = Result<T, Box<Problem>>;

impl WorkerApi {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { app }
    }

    /// Be the one worker, or stay it.
    pub async fn acquire_leader_lock(&self, request: &LeaderLockRequest) -> Answer<LeaderLockGrant> {
        worker::acquire_leader_lock(&self.app, &orchestrator_principal(), request).await.map_err(problem)
    }

    /// Which sessions changed, waiting for one if the request says so.
    pub async fn changed_sessions(
        &self,
        request: &IntentSessionChangesRequest,
    ) -> Answer<IntentSessionChanges> {
        worker::changes(&self.app, request).await.map_err(problem)
    }

    pub async fn take_session(&self, request: &IntentSessionTakeRequest) -> Answer<IntentSessionStatus> {
        worker::take(&self.app, request).await.map_err(problem)
    }

    pub async fn report_running(&self, request: &IntentSessionRunningReport) -> Answer<IntentSessionStatus> {
        worker::report_running(&self.app, request).await.map_err(problem)
    }

    pub async fn finish_session(&self, request: &IntentSessionFinishRequest) -> Answer<IntentSessionStatus> {
        worker::finish(&self.app, request).await.map_err(problem)
    }

    /// The worker lives, and so do these sessions.
    pub async fn renew_leases(&self, request: &IntentSessionRenewalRequest) -> Answer<IntentSessionRenewals> {
        worker::renew_leases(&self.app, request).await.map_err(problem)
    }

    /// The processes of these sessions were seen gone.
    pub async fn wipe_sessions(&self, request: &IntentSessionWipeRequest) -> Answer<WipeResult> {
        worker::wipe(&self.app, request).await.map_err(problem)
    }

    pub async fn release_leader_lock(&self, request: &LeaderLockReleaseRequest) -> Answer<()> {
        worker::release_leader_lock(&self.app, request).await.map(drop).map_err(problem)
    }
}

fn problem(failure: HttpError) -> Box<Problem> {
    failure.0
}
