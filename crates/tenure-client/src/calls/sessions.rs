//! Sessions, and requests of a worker.

use serde::Serialize;
use tenure_api::{
    AskChanges, Changes, FinishSession, Guarded, IntentAccepted, IntentRequest, KeepSessions, KeptSessions,
    LeaveGuard, SessionNow, SessionRuns, SessionView, Sessions, TakeGuard, TakeSession, WipeSessions,
    WipedSessions,
};

use crate::client::Client;
use crate::connection::{Call, Query, Repeat};
use crate::error::Error;

const INTENTS: &str = "/api/v3/intents";
const SESSIONS: &str = "/api/v3/sessions";

impl Client {
    /// Says what is wanted. The same said twice is one session, for as long as that goes on.
    pub async fn intend(&self, request: &IntentRequest) -> Result<IntentAccepted, Error> {
        self.ask(&Call::post(INTENTS.into(), request, Repeat::Harmless)).await
    }

    /// Asks for a session's end, and says where it is. One that is over stays as it is.
    pub async fn stop_session(&self, id: &str) -> Result<IntentAccepted, Error> {
        self.ask(&Call::delete(Query::path(SESSIONS, &[id]).into_text())).await
    }

    /// One session as it is, alive or ended not long ago.
    pub async fn session(&self, id: &str) -> Result<SessionView, Error> {
        self.ask(&Call::get(Query::path(SESSIONS, &[id]).into_text())).await
    }

    /// One session, when it has changed since `revision`, or as it is after so many milliseconds (at most 60,000).
    pub async fn session_after(&self, id: &str, revision: u64, wait_ms: u64) -> Result<SessionView, Error> {
        let query = Query::path(SESSIONS, &[id])
            .with("waitMs", Some(&wait_ms.to_string()))
            .with("since", Some(&revision.to_string()));
        self.ask(&Call::get(query.into_text()).waiting(wait_ms)).await
    }

    /// The sessions that go on and those that ended last, the newest first; with a state, those in it.
    pub async fn sessions(&self, state: Option<&str>) -> Result<Vec<SessionView>, Error> {
        let query = Query::new(SESSIONS).with("state", state);
        let answer = self.ask::<Sessions>(&Call::get(query.into_text()).for_a_list()).await;
        answer.map(|answer| answer.sessions)
    }
}

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
