//! What an agent is about to touch, and what comes of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::leases::AgentLease;

/// `POST /v1/manifest`: everything that an agent is about to touch.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// In which session.
    #[schema(min_length = 1, max_length = 256)]
    pub session_id: String,
    /// Who.
    #[schema(min_length = 1, max_length = 256, example = "agent-1")]
    pub agent_id: String,
    /// What it is about to touch.
    #[schema(min_items = 1, max_items = 256)]
    pub intents: Vec<ManifestIntent>,
    /// For how long, in milliseconds, unless it sends heartbeats. More than is permitted is cut to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, example = 60_000)]
    pub ttl: Option<u64>,
    /// When its attempt began, in milliseconds: smaller is older, and older is stronger. Without it, the smallest timestamp of
    /// its intents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// How long it waits if it has to.
    #[serde(rename = "waitTimeoutMs", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub wait_timeout_ms: Option<u64>,
}

/// One thing that an agent is about to touch.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestIntent {
    /// Names it for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256)]
    pub id: Option<String>,
    /// Who or what does it, in the agent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4_096)]
    pub subject: Option<String>,
    /// In which way.
    #[schema(pattern = "^(PROVIDES|CONSUMES|DEPENDS_ON|MUTATES|DELETES|RENAMES)$", example = "MUTATES")]
    pub predicate: String,
    /// What.
    pub object: ManifestObject,
    /// When it was intended, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<u64>,
    /// How sure the agent is, from 0 to 1. It decides nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: Option<f64>,
    /// In which session; the manifest's, if it is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256)]
    pub session_id: Option<String>,
}

/// What an agent is about to touch. Its resource is `TYPE:path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestObject {
    /// `FILE`, `SYMBOL`, `API_ENDPOINT`, `DATABASE_TABLE` or `CONFIG_KEY`.
    #[schema(pattern = "^(FILE|SYMBOL|API_ENDPOINT|DATABASE_TABLE|CONFIG_KEY)$", example = "FILE")]
    pub resource_type: String,
    /// Where. What ends with `/` means everything below, and so does a pattern with `*` or `?` from there on.
    #[schema(min_length = 1, max_length = 4_096, example = "src/lib.rs")]
    pub path: String,
}

/// What a manifest led to. It is the worst of what each of its intents leads to: nothing is granted unless all is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "verdict", rename_all = "UPPERCASE")]
pub enum ManifestVerdict {
    /// All of it is the agent's.
    Granted {
        /// One for each resource, in the order in which they were first named.
        leases: Vec<AgentLease>,
    },
    /// The agent waits. The same manifest sent again says how that goes; when its turn comes, all is granted.
    #[serde(rename_all = "camelCase")]
    Wait {
        /// How long it waits at the most, from now.
        wait_timeout_ms: u64,
        /// When it gives up.
        wait_until: String,
        /// How many wait for something of it, itself and those before it.
        position: usize,
        /// Who is in the way.
        blocked_by: Vec<String>,
    },
    /// The agent may come back later, with the priority that it has.
    #[serde(rename_all = "camelCase")]
    Die {
        /// After how long.
        retry_after_ms: u64,
        /// With which priority: the one that it has.
        #[serde(rename = "priority_timestamp")]
        priority_timestamp: u64,
        /// Who is in the way.
        blocked_by: Vec<String>,
        /// The leases that it held and an older agent waits for: they are over.
        ended: Vec<String>,
    },
}
