//! Intents, and the sessions that they become.

use tenure_api::{IntentAccepted, IntentRequest, SessionView, Sessions};

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
