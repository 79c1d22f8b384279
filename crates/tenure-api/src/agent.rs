//! What agents ask, and what they are told. Names are as the KLIS documents have them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
pub enum Verdict {
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

/// A lease as agents see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentLease {
    /// Names it.
    pub id: String,
    /// On what.
    #[schema(example = "FILE:src/lib.rs")]
    pub resource: String,
    /// In which way.
    pub predicate: String,
    /// Whose it is.
    pub agent_id: String,
    /// Since when, RFC 3339 in UTC.
    pub acquired_at: String,
    /// Until when: at that moment it is over.
    pub expires_at: String,
    /// How much a heartbeat gives, in milliseconds.
    pub ttl: u64,
    /// Grows with every grant.
    pub fence: u64,
    /// How long it lasts from the moment of the answer.
    #[serde(rename = "remainingMs")]
    pub remaining_ms: u64,
}

/// The leases that an agent asks about: `POST /v1/leases/heartbeat`, `/release` and `/reconcile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentLeases {
    /// Who asks.
    #[schema(min_length = 1, max_length = 256)]
    pub agent_id: String,
    /// Which leases.
    #[schema(max_items = 1_024)]
    pub lease_ids: Vec<String>,
}

/// What became of each lease with a heartbeat, in the order asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Heartbeat {
    /// These live.
    pub renewed: Vec<Beat>,
    /// These do not, or are not this agent's.
    pub rejected: Vec<Rejected>,
}

/// A lease that a heartbeat reached in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Beat {
    /// Which lease.
    pub id: String,
    /// Until when it lasts.
    pub expires_at: String,
    /// How long that is.
    #[serde(rename = "remainingMs")]
    pub remaining_ms: u64,
}

/// A lease that a heartbeat did not help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rejected {
    /// Which lease.
    pub id: String,
    /// `EXPIRED`, `RELEASED`, `REVOKED` or `NOT_FOUND`.
    pub code: String,
}

/// `POST /v1/leases/release`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReleasedLeases {
    /// These are over, by this request or before it.
    pub released: Vec<String>,
    /// These are unknown, or somebody else's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// `POST /v1/leases/reconcile`: what is true, whatever the agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reconciled {
    /// Exactly the leases that were asked for.
    pub leases: BTreeMap<String, TrueLease>,
}

/// What is true of one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrueLease {
    /// Whether the agent has it.
    pub held: bool,
    /// `ACTIVE`, `EXPIRED`, `RELEASED`, or `UNKNOWN`: never given out, or over for too long, or somebody else's.
    pub state: String,
    /// How long it lasts; 0 where it is over.
    pub remaining_ms: u64,
    /// On what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// In which way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<String>,
    /// Until when it lasts or lasted.
    #[serde(rename = "expires_at", default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// How it ended: `EXPIRED`, `COMPLETED`, `ABORTED`, `VOLUNTARY`, `DIED`, `REVOKED`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// When it ended.
    #[serde(rename = "ended_at", default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Who has now what it was on, if somebody does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<String>,
}

/// `POST /v1/agents/{id}/state`: what an agent is doing.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportState {
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
    pub wants: Vec<Wanted>,
    /// Since when.
    pub since: String,
    /// When it gives up.
    pub wait_until: String,
    /// Who is in the way.
    pub blocked_by: Vec<String>,
}

/// A resource, and in which way it is wanted or touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wanted {
    /// On what: `TYPE:path`.
    #[schema(example = "FILE:src/lib.rs")]
    pub resource: String,
    /// In which way.
    #[schema(example = "MUTATES")]
    pub predicate: String,
}

/// What happened to an agent, as it is told in events. What does not belong to an event is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentChange {
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
    pub wants: Vec<Wanted>,
    /// When the wait gives up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_until: Option<String>,
    /// When it may come back, if it died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What it touched without a lease for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Wanted>,
    /// The leases whose resources it touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<String>,
    /// For how long it had held leases with one priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_ms: Option<u64>,
}

/// `GET /v1/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agents {
    /// By their names.
    pub agents: Vec<AgentView>,
}

/// `POST /v1/agents/{id}/touch`: what an agent is about to touch, or was seen to touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Touch {
    /// What, and in which way.
    #[schema(min_items = 1, max_items = 1_024)]
    pub resources: Vec<Wanted>,
}

/// All of it is within what the agent has leases for. Otherwise the answer is the problem `SCOPE_VIOLATION`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Touched {
    /// How many there were.
    pub within: usize,
}

/// `GET /v1/resource/{id}/state`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceState {
    /// Which resource.
    pub resource: String,
    /// Whether somebody has it, or something that overlaps it.
    pub held: bool,
    /// The leases on it, and on what overlaps it.
    pub leases: Vec<AgentLease>,
    /// Who waits for it, or for what overlaps it: agents first, the oldest first, then everybody else in their order.
    pub waiting: Vec<String>,
}

/// `GET /v1/contention`: who waits for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Contention {
    /// Everybody who waits or is waited for.
    pub nodes: Vec<ContentionNode>,
    /// Who waits for whom, on what.
    pub edges: Vec<ContentionEdge>,
    /// There are more edges than are told at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Somebody who waits or is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentionNode {
    /// The agent, or another holder.
    pub id: String,
    /// The agent's priority; nothing for holders of plain leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// What the agent said that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// One waits for the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentionEdge {
    /// Who waits.
    pub from: String,
    /// For whom.
    pub to: String,
    /// For what.
    pub resource: String,
    /// In which way.
    pub predicate: String,
    /// Whether the other has it (`HOLDS`) or waits in front (`WAITS`).
    pub because: String,
    /// How long the one waits at the most, from now.
    #[serde(rename = "waitTimeoutMs")]
    pub wait_timeout_ms: u64,
    /// Any one of several resources would do, and this is one of them: the other need not go.
    #[serde(rename = "oneOfSeveral", default, skip_serializing_if = "std::ops::Not::not")]
    pub one_of_several: bool,
}
