//! Intents, and the sessions that they become. Names are as the API of version 3 has them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// `POST /api/v3/intents`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentRequest {
    /// `stream.start`, which is also what is meant by nothing, or `stream.stop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^stream\\.(start|stop)$")]
    pub r#type: Option<String>,
    /// To start: which channel. Either this or a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1_024, example = "1:0:19:283D:3FB:1:C00000:0:0:0:")]
    pub service_ref: Option<String>,
    /// To start: which recording.
    #[serde(rename = "recordingID", skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1_024)]
    pub recording_id: Option<String>,
    /// To start: how it is to be shown.
    #[serde(rename = "profileID", skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1_024, example = "hd")]
    pub profile_id: Option<String>,
    /// Of a recording: from where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// Further particulars for the pipeline. Other particulars are another session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// By which the caller finds it again in its own logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1_024)]
    pub correlation_id: Option<String>,
    /// To stop: which session.
    #[serde(rename = "session_id", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// What an intent became: the answer to `POST /api/v3/intents` and to a stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptedIntent {
    /// Names the session.
    pub session_id: String,
    /// Where it is: `NEW`, `STARTING`, `RUNNING`, `STOPPING` or `ENDED`.
    pub state: String,
    /// Why it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// What the caller said, or the server made.
    #[serde(rename = "correlationId")]
    pub correlation_id: String,
}

/// One session, as `GET /api/v3/sessions/{id}` tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentSessionView {
    /// Its name, and the holder of its leases.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// Where it is: `NEW`, `STARTING`, `RUNNING`, `STOPPING` or `ENDED`.
    pub state: String,
    /// Why it is over: `R_LEASE_BUSY`, `R_LEASE_EXPIRED`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it went: `REJECTED_BUSY`, `REJECTED_NO_TUNER`, `COMPLETED`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// More about why it is over, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What the caller said, or the server made.
    pub correlation_id: String,
    /// The channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ref: Option<String>,
    /// The recording.
    #[serde(rename = "recordingID", default, skip_serializing_if = "Option::is_none")]
    pub recording_id: Option<String>,
    /// From where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// How it is shown.
    #[serde(rename = "profileID")]
    pub profile_id: String,
    /// Further particulars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// Which tuner it has or had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// Who carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The processes that do, as the worker names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Grows with every change of any session.
    pub revision: u64,
    /// When it was accepted, RFC 3339 in UTC.
    pub accepted_at: String,
    /// When it came to where it is.
    pub changed_at: String,
}

/// `GET /api/v3/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IntentSessionList {
    /// Those that go on, and those that ended last; the newest first.
    pub sessions: Vec<IntentSessionView>,
}
