//! What an agent is about to touch, and what comes of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::leases::AgentLease;

/// Request for all resources that an agent is about to touch.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Id of the agent session.
    #[schema(min_length = 1, max_length = 256)]
    pub session_id: String,
    /// Id of the agent.
    #[schema(min_length = 1, max_length = 256, example = "agent-1")]
    pub agent_id: String,
    /// Intended accesses, from 1 to 256.
    #[schema(min_items = 1, max_items = 256)]
    pub intents: Vec<ManifestIntent>,
    /// TTL in milliseconds, from 1000, reduced to the configured maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, example = 60_000)]
    pub ttl: Option<u64>,
    /// Start of the attempt in milliseconds: the smaller, the higher the priority. Default: smallest intent
    /// timestamp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// Maximum wait in milliseconds, from 1.
    #[serde(rename = "waitTimeoutMs", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub wait_timeout_ms: Option<u64>,
}

/// One intended access.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestIntent {
    /// Agent's id for the intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256)]
    pub id: Option<String>,
    /// Agent's description of the actor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4_096)]
    pub subject: Option<String>,
    /// Requested access mode.
    #[schema(pattern = "^(PROVIDES|CONSUMES|DEPENDS_ON|MUTATES|DELETES|RENAMES)$", example = "MUTATES")]
    pub predicate: String,
    /// Object to access.
    pub object: ManifestObject,
    /// Time of the intent in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<u64>,
    /// Agent's confidence, from 0 to 1, without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: Option<f64>,
    /// Session id, if sent equal to the manifest's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256)]
    pub session_id: Option<String>,
}

/// An object that an agent is about to touch: the resource `TYPE:path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestObject {
    /// Type: `FILE`, `SYMBOL`, `API_ENDPOINT`, `DATABASE_TABLE` or `CONFIG_KEY`.
    #[schema(pattern = "^(FILE|SYMBOL|API_ENDPOINT|DATABASE_TABLE|CONFIG_KEY)$", example = "FILE")]
    pub resource_type: String,
    /// Path: a trailing `/`, or the first `*` or `?`, covers all that starts with the part before it.
    #[schema(min_length = 1, max_length = 4_096, example = "src/lib.rs")]
    pub path: String,
}

/// The verdict on a manifest: the worst verdict of its intents, because all or none is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "verdict", rename_all = "UPPERCASE")]
pub enum ManifestVerdict {
    /// All leases were granted.
    Granted {
        /// Leases in order of first mention, one per resource.
        leases: Vec<AgentLease>,
    },
    /// The agent waits; repeat the manifest for the current verdict.
    #[serde(rename_all = "camelCase")]
    Wait {
        /// Milliseconds until the wait times out.
        wait_timeout_ms: u64,
        /// Time of the timeout, RFC 3339 in UTC.
        wait_until: String,
        /// Position among agents waiting for the same resources, from 1.
        position: usize,
        /// Names of blocking holders.
        blocked_by: Vec<String>,
    },
    /// The agent must abort and may retry with the same priority.
    #[serde(rename_all = "camelCase")]
    Die {
        /// Milliseconds until the retry.
        retry_after_ms: u64,
        /// Priority timestamp for the retry.
        #[serde(rename = "priority_timestamp")]
        priority_timestamp: u64,
        /// Names of blocking holders.
        blocked_by: Vec<String>,
        /// Ids of its leases revoked for older agents.
        ended: Vec<String>,
    },
}
