//! What agents say that they do, and how they stand.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::leases::AgentLease;
use super::manifest::ManifestIntent;

/// `POST /v1/agents/{id}/state`: what an agent is doing.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentStateReport {
    /// In which session.
    #[schema(min_length = 1, max_length = 256)]
    pub session_id: String,
    /// What it is doing.
    #[schema(
        pattern = "^(PLANNING|ACQUIRING|EXECUTING|PAUSED|VERIFYING|COMPLETED|ABORTED|DIE_RESTART)$",
        example = "EXECUTING"
    )]
    pub state: String,
    /// What it remembers from before its process restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<StateDigest>,
}

/// What an agent remembers from before its process restarted.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StateDigest {
    /// `1.0`.
    #[schema(example = "1.0")]
    pub version: String,
    /// Who it was.
    pub identity: DigestIdentity,
    /// Where it was.
    pub recovery: DigestRecovery,
}

/// Who an agent was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DigestIdentity {
    /// Its name.
    pub agent_id: String,
    /// The priority of its attempt.
    pub priority_timestamp: u64,
    /// Which of its lives that was.
    pub epoch: u64,
}

/// Where an agent was.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DigestRecovery {
    /// What it was doing.
    pub last_phase: String,
    /// What it had not got yet.
    #[schema(max_items = 256)]
    pub pending_intents: Vec<ManifestIntent>,
}

/// One agent as it is: `GET /v1/agents/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// Its name.
    #[serde(rename = "agent_id")]
    pub agent_id: String,
    /// In which session it is.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// What it said that it does; nothing if it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The priority of its attempt.
    #[serde(rename = "priority_timestamp", default, skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// Which of its lives this is, as it said.
    pub epoch: u64,
    /// When something last happened to it.
    pub changed_at: String,
    /// What it has.
    pub leases: Vec<AgentLease>,
    /// What it waits for.
    pub waits: Vec<AgentWait>,
    /// How often it died in its attempt.
    pub deaths: u32,
    /// When it may come back, if it died last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What it touched in its attempt without a lease for it.
    pub outside: Vec<String>,
    /// For how long it has held leases with this priority.
    pub held_ms: u64,
    /// Of what it remembered that it wanted: how each stands. Only in the answer to a state with a digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingIntent>,
}

/// What an agent remembered that it wanted, as that stands now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingIntent {
    /// On what.
    pub resource: String,
    /// In which way.
    pub predicate: String,
    /// `HELD` by this agent, `FREE`, or `BLOCKED`.
    pub now: String,
}

/// A wait of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentWait {
    /// For what, and in which way.
    pub wants: Vec<ResourceAccess>,
    /// Since when.
    pub since: String,
    /// When it gives up.
    pub wait_until: String,
    /// Who is in the way.
    pub blocked_by: Vec<String>,
}

/// A resource, and in which way it is wanted or touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceAccess {
    /// On what: `TYPE:path`.
    #[schema(example = "FILE:src/lib.rs")]
    pub resource: String,
    /// In which way.
    #[schema(example = "MUTATES")]
    pub predicate: String,
}

/// `GET /v1/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// By their names.
    pub agents: Vec<AgentView>,
}

/// `POST /v1/agents/{id}/touch`: what an agent is about to touch, or was seen to touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceTouchReport {
    /// What, and in which way.
    #[schema(min_items = 1, max_items = 1_024)]
    pub resources: Vec<ResourceAccess>,
}

/// All of it is within what the agent has leases for. Otherwise the answer is the problem `SCOPE_VIOLATION`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TouchResult {
    /// How many there were.
    pub within: usize,
}

/// What happened to an agent, as it is told in events. What does not belong to an event is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentEventDetails {
    /// Its name; empty where nobody remembers whose wait it was.
    #[serde(rename = "agent_id")]
    pub agent_id: String,
    /// In which session it is.
    #[serde(rename = "session_id", default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What it said that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The priority of its attempt.
    #[serde(rename = "priority_timestamp", default, skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// Which of its lives this is, as it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The wait that began or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<u64>,
    /// What was waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wants: Vec<ResourceAccess>,
    /// When the wait gives up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_until: Option<String>,
    /// When it may come back, if it died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What it touched without a lease for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<ResourceAccess>,
    /// The leases whose resources it touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<String>,
    /// For how long it had held leases with one priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_ms: Option<u64>,
}
