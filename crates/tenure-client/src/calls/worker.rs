//! What a worker in a process of its own asks. Each may be asked twice: it leads to the same.

use serde::Serialize;
use tenure_api::{
    AskChanges, Changes, FinishSession, Guarded, KeepSessions, KeptSessions, LeaveGuard, SessionNow,
    SessionRuns, TakeGuard, TakeSession, WipeSessions, WipedSessions,
};

use crate::client::Client;
use crate::connection::{Call, Repeat};
use crate::error::Error;

impl Client {
    /// Be the one worker, or stay it.
    pub async fn worker_guard(&self, request: &TakeGuard) -> Result<Guarded, Error> {
        self.ask(&call("guard", request)).await
    }

    /// Which sessions changed, waiting for one if the request says so.
    pub async fn worker_changes(&self, request: &AskChanges) -> Result<Changes, Error> {
        let call = call("changes", request).waiting(request.wait_ms.unwrap_or(0)).for_a_list();
        self.ask(&call).await
    }

    /// A session with its leases.
    pub async fn worker_take(&self, request: &TakeSession) -> Result<SessionNow, Error> {
        self.ask(&call("take", request)).await
    }

    /// Its pipeline runs.
    pub async fn worker_running(&self, request: &SessionRuns) -> Result<SessionNow, Error> {
        self.ask(&call("running", request)).await
    }

    /// Its pipeline is gone.
    pub async fn worker_finish(&self, request: &FinishSession) -> Result<SessionNow, Error> {
        self.ask(&call("finish", request)).await
    }

    /// The worker lives, and so do these sessions.
    pub async fn worker_keep(&self, request: &KeepSessions) -> Result<KeptSessions, Error> {
        self.ask(&call("keep", request)).await
    }

    /// The processes of these sessions were seen gone.
    pub async fn worker_wipe(&self, request: &WipeSessions) -> Result<WipedSessions, Error> {
        self.ask(&call("wipe", request)).await
    }

    /// The worker ends.
    pub async fn worker_leave(&self, request: &LeaveGuard) -> Result<(), Error> {
        self.ask::<serde::de::IgnoredAny>(&call("leave", request)).await.map(drop)
    }
}

fn call(what: &str, request: &(impl Serialize + ?Sized)) -> Call {
    Call::post(format!("/api/v3/worker/{what}"), &request, Repeat::Harmless)
}
