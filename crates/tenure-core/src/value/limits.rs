//! Bounds on what a caller can make grow.

use super::TickDuration;

/// What is permitted. Part of the configuration, not of the ledger: a replay never asks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub min_ttl: TickDuration,
    pub max_ttl: TickDuration,
    pub max_wait: TickDuration,
    pub max_leases_per_request: usize,
    /// The most resources of which one lease may name any one.
    pub max_alternatives: usize,
    /// The most bytes of names and labels in one request.
    pub max_request_bytes: usize,
    /// The most leases that one request may wait for. Whoever waits is served together with others, in one
    /// write: a thousand waiters for many resources each would make one that is too large.
    pub max_leases_per_queued_request: usize,
    /// The most bytes of names and labels in a request that waits, for the same reason.
    pub max_queued_request_bytes: usize,
    pub max_waiters_per_resource: usize,
    pub max_waiters_per_principal: usize,
    /// The most leases that one principal may hold or wait for; `None` is no such bound.
    pub max_leases_per_principal: Option<usize>,
    /// The most waits of agents at a time.
    pub max_waiting_agents: usize,
    /// The most waits of one agent at a time.
    pub max_waiting_per_agent: usize,
    /// The most that they wait for together.
    pub max_waiting_agent_leases: usize,
    /// After how long an agent that died may come back: the first time, and at most.
    pub backoff: (TickDuration, TickDuration),
    /// For how long an agent may hold leases with one age; `None` is no such bound.
    pub max_agent_hold_time: Option<TickDuration>,
    /// For how long an agent may leave untouched what it has a lease to change; `None` is no such bound.
    pub max_agent_idle_time: Option<TickDuration>,
    /// After how long the one retry for a file is due.
    pub file_retry_delay: TickDuration,
    /// For how long a session has files after its turn ended and nothing was heard of it.
    pub file_idle_timeout: TickDuration,
    /// The most sessions that go on at a time.
    pub max_intent_sessions: usize,
    /// The most bytes that these take, about.
    pub max_intent_session_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            min_ttl: TickDuration::from_secs(1),
            max_ttl: TickDuration::from_secs(24 * 60 * 60),
            max_wait: TickDuration::from_secs(24 * 60 * 60),
            max_leases_per_request: 256,
            max_alternatives: 64,
            max_request_bytes: 1 << 18,
            max_leases_per_queued_request: 16,
            max_queued_request_bytes: 1 << 13,
            max_waiters_per_resource: 1_024,
            max_waiters_per_principal: 64,
            max_leases_per_principal: None,
            max_waiting_agents: 1_024,
            max_waiting_per_agent: 16,
            max_waiting_agent_leases: 8_192,
            backoff: (TickDuration::from_millis(250), TickDuration::from_secs(30)),
            max_agent_hold_time: None,
            max_agent_idle_time: None,
            file_retry_delay: TickDuration::from_secs(180),
            file_idle_timeout: TickDuration::from_secs(30),
            max_intent_sessions: 10_000,
            max_intent_session_bytes: 64 << 20,
        }
    }
}

/// A holder's name stays its principal's for this long after it last held or waited for anything.
pub const HOLDER_RETENTION: TickDuration = TickDuration::from_secs(24 * 60 * 60);

/// At most this many names of holders that hold and wait for nothing are remembered; the oldest go first.
pub const MAX_IDLE_HOLDERS: usize = 1 << 20;

/// An idempotency key still finds its lease for this long after the lease's end.
pub const KEY_RETENTION: TickDuration = TickDuration::from_secs(60);

/// What became of a lease is remembered for this long after its end; the ledger knows it for longer.
pub const ENDED_LEASE_RETENTION: TickDuration = TickDuration::from_secs(10 * 60);

/// At most this many ended leases are remembered; the oldest go first.
pub const MAX_ENDED_LEASES: usize = 1 << 16;

/// What became of a session is remembered for this long after its end; the ledger knows it for longer.
pub const INTENT_SESSION_RETENTION: TickDuration = TickDuration::from_secs(60 * 60);

/// At most this many ended sessions are remembered; the oldest go first.
pub const MAX_ENDED_INTENT_SESSIONS: usize = 1 << 13;

/// About how many bytes of ended sessions are remembered; the oldest go first.
pub const MAX_ENDED_INTENT_SESSION_BYTES: usize = 16 << 20;

/// At most this many sessions are kept or wiped by one request: one decision is one part of a batch.
pub const MAX_INTENT_SESSIONS_PER_COMMAND: usize = 1_024;

/// An agent of whom nothing is heard, and who holds and waits for nothing, is remembered for this long.
pub const AGENT_RETENTION: TickDuration = TickDuration::from_secs(24 * 60 * 60);

/// How much longer the leases of an agent last that says in time that it restarts, once each.
pub const RESTART_GRACE: TickDuration = TickDuration::from_secs(15);

/// What an agent remembers from before it restarted counts for this long after it said that it restarts.
pub const AGENT_MEMORY_VALIDITY: TickDuration = TickDuration::from_secs(5 * 60);

/// At most this many things that an agent touched without a lease are remembered, and told, in one attempt.
pub const MAX_OUTSIDE_TOUCHES: usize = 16;

/// And at most so many bytes of their names.
pub const MAX_OUTSIDE_TOUCH_BYTES: usize = 1 << 13;

/// At most this many agents that hold and wait for nothing are remembered; the oldest go first.
pub const MAX_IDLE_AGENTS: usize = 1 << 16;

/// At most this many things can be told to be touched at once.
pub const MAX_TOUCHES_PER_COMMAND: usize = 1_024;

/// At most this many living leases stand below one lease: all of them end with it, in one decision.
pub const MAX_DESCENDANTS: usize = 1_024;

/// At most this many leases stand above one.
pub const MAX_DERIVATION_DEPTH: usize = 16;

/// The youngest that an agent can say it is. Programs that keep numbers as doubles still tell any two ages apart.
pub const MAX_PRIORITY: u64 = (1 << 53) - 1;

/// At most this many sessions of coding agents live at a time, subagents among them.
pub const MAX_FILE_SESSIONS: usize = 10_000;

/// At most this many files in one request.
pub const MAX_FILES_PER_COMMAND: usize = 1_000;

/// At most this many names do the files of one request have together.
pub const MAX_FILE_NAMES_PER_COMMAND: usize = 4_000;

/// At most this many bytes do these names have together: what one request leads to is written at once.
pub const MAX_FILE_NAME_BYTES_PER_COMMAND: usize = 1 << 20;

/// At most this many tickets for files has one session.
pub const MAX_RETRY_TICKETS_PER_SESSION: usize = 1_024;

/// At most this many reports of sessions that were blocked are remembered after they got on; the oldest go first.
pub const MAX_BLOCKED_REPORTS: usize = 1_000;

/// Of at most this many files it is remembered who left them without a commit; the oldest go first.
pub const MAX_UNCOMMITTED_FILES: usize = 10_000;

/// A sign of life within this time of the last one says nothing new.
pub const MIN_SEEN_INTERVAL: TickDuration = TickDuration::from_secs(1);

/// At most this many names of a circle are told.
pub const MAX_REPORTED_CYCLE: usize = 32;
