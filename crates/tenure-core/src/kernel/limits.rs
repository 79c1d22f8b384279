//! Bounds on what a caller can make grow.

use super::value::Span;

/// What is permitted. Part of the configuration, not of the ledger: a replay never asks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub shortest_ttl: Span,
    pub longest_ttl: Span,
    pub longest_wait: Span,
    pub wants: usize,
    /// The most resources of which one lease may name any one.
    pub alternatives: usize,
    /// The most bytes of names and labels in one request.
    pub request_bytes: usize,
    /// The most leases that one request may wait for. Whoever waits is served together with others, in one
    /// write: a thousand waiters for many resources each would make one that is too large.
    pub wants_waiting: usize,
    /// The most bytes of names and labels in a request that waits, for the same reason.
    pub waiting_bytes: usize,
    pub waiters_per_resource: usize,
    pub waits_per_principal: usize,
    /// The most leases that one principal may hold or wait for; `None` is no such bound.
    pub leases_per_principal: Option<usize>,
    /// The most waits of agents at a time.
    pub pending: usize,
    /// The most waits of one agent at a time.
    pub pending_of_agent: usize,
    /// The most that they wait for together.
    pub pending_wants: usize,
    /// After how long an agent that died may come back: the first time, and at most.
    pub backoff: (Span, Span),
    /// For how long an agent may hold leases with one age; `None` is no such bound.
    pub lease_time: Option<Span>,
    /// For how long an agent may leave untouched what it has a lease to change; `None` is no such bound.
    pub idle: Option<Span>,
    /// After how long the one retry for a file is due.
    pub file_retry: Span,
    /// For how long a session has files after its turn ended and nothing was heard of it.
    pub file_idle: Span,
    /// The most sessions that go on at a time.
    pub sessions: usize,
    /// The most bytes that these take, about.
    pub session_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            shortest_ttl: Span::from_secs(1),
            longest_ttl: Span::from_secs(24 * 60 * 60),
            longest_wait: Span::from_secs(24 * 60 * 60),
            wants: 256,
            alternatives: 64,
            request_bytes: 1 << 18,
            wants_waiting: 16,
            waiting_bytes: 1 << 13,
            waiters_per_resource: 1_024,
            waits_per_principal: 64,
            leases_per_principal: None,
            pending: 1_024,
            pending_of_agent: 16,
            pending_wants: 8_192,
            backoff: (Span::from_millis(250), Span::from_secs(30)),
            lease_time: None,
            idle: None,
            file_retry: Span::from_secs(180),
            file_idle: Span::from_secs(30),
            sessions: 10_000,
            session_bytes: 64 << 20,
        }
    }
}

/// A holder's name stays its principal's for this long after it last held or waited for anything.
pub const HOLDER_KEPT: Span = Span::from_secs(24 * 60 * 60);

/// At most this many names of holders that hold and wait for nothing are remembered; the oldest go first.
pub const IDLE_HOLDERS_KEPT: usize = 1 << 20;

/// An idempotency key still finds its lease for this long after the lease's end.
pub const KEY_KEPT: Span = Span::from_secs(60);

/// What became of a lease is remembered for this long after its end; the ledger knows it for longer.
pub const ENDED_KEPT: Span = Span::from_secs(10 * 60);

/// At most this many ended leases are remembered; the oldest go first.
pub const ENDED_LEASES_KEPT: usize = 1 << 16;

/// What became of a session is remembered for this long after its end; the ledger knows it for longer.
pub const SESSION_KEPT: Span = Span::from_secs(60 * 60);

/// At most this many ended sessions are remembered; the oldest go first.
pub const SESSIONS_KEPT: usize = 1 << 13;

/// About how many bytes of ended sessions are remembered; the oldest go first.
pub const SESSION_BYTES_KEPT: usize = 16 << 20;

/// At most this many sessions are kept or wiped by one request: one decision is one part of a batch.
pub const SESSIONS_AT_ONCE: usize = 1_024;

/// An agent of whom nothing is heard, and who holds and waits for nothing, is remembered for this long.
pub const AGENT_KEPT: Span = Span::from_secs(24 * 60 * 60);

/// How much longer the leases of an agent last that says in time that it restarts, once each.
pub const RESTART_GRACE: Span = Span::from_secs(15);

/// What an agent remembers from before it restarted counts for this long after it said that it restarts.
pub const MEMORY_KEPT: Span = Span::from_secs(5 * 60);

/// At most this many things that an agent touched without a lease are remembered, and told, in one attempt.
pub const STRAYS_KEPT: usize = 16;

/// And at most so many bytes of their names.
pub const STRAY_BYTES_KEPT: usize = 1 << 13;

/// At most this many agents that hold and wait for nothing are remembered; the oldest go first.
pub const AGENTS_KEPT: usize = 1 << 16;

/// At most this many things can be told to be touched at once.
pub const TOUCHES_AT_ONCE: usize = 1_024;

/// At most this many living leases stand below one lease: all of them end with it, in one decision.
pub const DESCENDANTS: usize = 1_024;

/// At most this many leases stand above one.
pub const DESCENT: usize = 16;

/// The youngest that an agent can say it is. Programs that keep numbers as doubles still tell any two ages apart.
pub const LATEST_PRIORITY: u64 = (1 << 53) - 1;

/// At most this many sessions of coding agents live at a time, subagents among them.
pub const FILE_SESSIONS: usize = 10_000;

/// At most this many files in one request.
pub const FILES_AT_ONCE: usize = 1_000;

/// At most this many names do the files of one request have together.
pub const FILE_NAMES_AT_ONCE: usize = 4_000;

/// At most this many bytes do these names have together: what one request leads to is written at once.
pub const FILE_BYTES_AT_ONCE: usize = 1 << 20;

/// At most this many tickets for files has one session.
pub const FILE_TICKETS: usize = 1_024;

/// At most this many reports of sessions that were blocked are remembered after they got on; the oldest go first.
pub const FILE_REPORTS_KEPT: usize = 1_000;

/// Of at most this many files it is remembered who left them without a commit; the oldest go first.
pub const LEFT_FILES_KEPT: usize = 10_000;

/// A sign of life within this time of the last one says nothing new.
pub const SEEN_EVERY: Span = Span::from_secs(1);

/// At most this many names of a circle are told.
pub const CIRCLE_TOLD: usize = 32;
