//! Sessions, and requests of a worker.

use serde::Serialize;
use tenure_api::{
    AcceptedIntent, IntentRequest, IntentSessionChanges, IntentSessionChangesRequest,
    IntentSessionFinishRequest, IntentSessionList, IntentSessionRenewalRequest, IntentSessionRenewals,
    IntentSessionRunningReport, IntentSessionStatus, IntentSessionTakeRequest, IntentSessionView,
    IntentSessionWipeRequest, LeaderLockGrant, LeaderLockReleaseRequest, LeaderLockRequest, WipeResult,
};

use crate::client::Client;
use crate::error::Error;
use crate::http::{ApiRequest, Idempotency, PathAndQuery};

const INTENTS: &str = "/api/v3/intents";
const SESSIONS: &str = "/api/v3/sessions";

impl Client {
    /// Says what is wanted. The same said twice is one session, for as long as that goes on.
    pub async fn submit_intent(&self, request: &IntentRequest) -> Result<AcceptedIntent, Error> {
        self.send(&ApiRequest::post(INTENTS.into(), request, Idempotency::Idempotent)).await
    }

    /// Asks for a session's end, and says where it is. One that is over stays as it is.
    pub async fn stop_intent_session(&self, id: &str) -> Result<AcceptedIntent, Error> {
        self.send(&ApiRequest::delete(PathAndQuery::path(SESSIONS, &[id]).into_text())).await
    }

    /// One session as it is, alive or ended not long ago.
    pub async fn intent_session(&self, id: &str) -> Result<IntentSessionView, Error> {
        self.send(&ApiRequest::get(PathAndQuery::path(SESSIONS, &[id]).into_text())).await
    }

    /// One session, when it has changed since `revision`, or as it is after so many milliseconds (at most 60,000).
    pub async fn intent_session_after(
        &self,
        id: &str,
        revision: u64,
        wait_ms: u64,
    ) -> Result<IntentSessionView, Error> {
        let query = PathAndQuery::path(SESSIONS, &[id])
            .with("waitMs", Some(&wait_ms.to_string()))
            .with("since", Some(&revision.to_string()));
        self.send(&ApiRequest::get(query.into_text()).with_wait(wait_ms)).await
    }

    /// The sessions that go on and those that ended last, the newest first; with a state, those in it.
    pub async fn intent_sessions(&self, state: Option<&str>) -> Result<Vec<IntentSessionView>, Error> {
        let query = PathAndQuery::new(SESSIONS).with("state", state);
        let answer =
            self.send::<IntentSessionList>(&ApiRequest::get(query.into_text()).with_list_limit()).await;
        answer.map(|answer| answer.sessions)
    }
}

impl Client {
    /// Be the one worker, or stay it.
    pub async fn worker_acquire_leader_lock(
        &self,
        request: &LeaderLockRequest,
    ) -> Result<LeaderLockGrant, Error> {
        self.send(&worker_request("guard", request)).await
    }

    /// Which sessions changed, waiting for one if the request says so.
    pub async fn worker_changed_sessions(
        &self,
        request: &IntentSessionChangesRequest,
    ) -> Result<IntentSessionChanges, Error> {
        let call =
            worker_request("changes", request).with_wait(request.wait_ms.unwrap_or(0)).with_list_limit();
        self.send(&call).await
    }

    /// A session with its leases.
    pub async fn worker_take_session(
        &self,
        request: &IntentSessionTakeRequest,
    ) -> Result<IntentSessionStatus, Error> {
        self.send(&worker_request("take", request)).await
    }

    /// Its pipeline runs.
    pub async fn worker_report_running(
        &self,
        request: &IntentSessionRunningReport,
    ) -> Result<IntentSessionStatus, Error> {
        self.send(&worker_request("running", request)).await
    }

    /// Its pipeline is gone.
    pub async fn worker_finish_session(
        &self,
        request: &IntentSessionFinishRequest,
    ) -> Result<IntentSessionStatus, Error> {
        self.send(&worker_request("finish", request)).await
    }

    /// The worker lives, and so do these sessions.
    pub async fn worker_renew_leases(
        &self,
        request: &IntentSessionRenewalRequest,
    ) -> Result<IntentSessionRenewals, Error> {
        self.send(&worker_request("keep", request)).await
    }

    /// The processes of these sessions were seen gone.
    pub async fn worker_wipe_sessions(
        &self,
        request: &IntentSessionWipeRequest,
    ) -> Result<WipeResult, Error> {
        self.send(&worker_request("wipe", request)).await
    }

    /// The worker ends.
    pub async fn worker_release_leader_lock(&self, request: &LeaderLockReleaseRequest) -> Result<(), Error> {
        self.send::<serde::de::IgnoredAny>(&worker_request("leave", request)).await.map(drop)
    }
}

fn worker_request(action: &str, request: &(impl Serialize + ?Sized)) -> ApiRequest {
    ApiRequest::post(format!("/api/v3/worker/{action}"), &request, Idempotency::Idempotent)
}
