//! Intents, and the sessions that they become. Names are as the API of version 3 has them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Request to start or stop a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentRequest {
    /// Intent type: `stream.start` (default) or `stream.stop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^stream\\.(start|stop)$")]
    pub r#type: Option<String>,
    /// Channel to start, unless a recording is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1_024, example = "1:0:19:283D:3FB:1:C00000:0:0:0:")]
    pub service_ref: Option<String>,
    /// Recording to start.
    #[serde(rename = "recordingID", default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1_024)]
    pub recording_id: Option<String>,
    /// Stream profile, required to start.
    #[serde(rename = "profileID", default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1_024, example = "hd")]
    pub profile_id: Option<String>,
    /// Start position in a recording in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// Pipeline parameters, part of the session's identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// Correlation id for the caller's logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1_024)]
    pub correlation_id: Option<String>,
    /// Session to stop.
    #[serde(rename = "session_id", default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The session of an accepted intent or stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptedIntent {
    /// Id of the session.
    pub session_id: String,
    /// State: `NEW`, `STARTING`, `RUNNING`, `STOPPING` or `ENDED`.
    pub state: String,
    /// Reason for the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Outcome of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Correlation id, sent or generated.
    #[serde(rename = "correlationId")]
    pub correlation_id: String,
}

/// A stream session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentSessionView {
    /// Session id, also the holder of its leases.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// State: `NEW`, `STARTING`, `RUNNING`, `STOPPING` or `ENDED`.
    pub state: String,
    /// Reason for the end: `R_LEASE_BUSY`, `R_LEASE_EXPIRED`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Outcome: `REJECTED_BUSY`, `REJECTED_NO_TUNER`, `COMPLETED`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Detail about the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Correlation id, sent or generated.
    pub correlation_id: String,
    /// Channel of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ref: Option<String>,
    /// Recording of the stream.
    #[serde(rename = "recordingID", default, skip_serializing_if = "Option::is_none")]
    pub recording_id: Option<String>,
    /// Start position in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// Profile of the stream.
    #[serde(rename = "profileID")]
    pub profile_id: String,
    /// Parameters of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// Number of the latest tuner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// Worker that took the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Worker's name for the pipeline processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Revision: increases with every change of any session.
    pub revision: u64,
    /// Time of acceptance, RFC 3339 in UTC.
    pub accepted_at: String,
    /// Time of the last state change, RFC 3339 in UTC.
    pub changed_at: String,
}

/// A list of stream sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IntentSessionList {
    /// Active and recently ended sessions, newest first.
    pub sessions: Vec<IntentSessionView>,
}
