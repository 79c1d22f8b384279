//! What can be chosen about agents.

use tenure_core::kernel::{Limits, Span};

/// What was chosen. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    /// How long a lease lasts where nobody says.
    pub ttl_ms: u64,
    /// How long at the most: who asks for more gets this.
    pub longest_ttl_ms: u64,
    /// How long an agent waits where nobody says.
    pub wait_ms: u64,
    /// How long at the most: who asks for more waits this long.
    pub longest_wait_ms: u64,
    /// After how long an agent that died may come back, the first time. Each time it is twice as long.
    pub backoff_ms: u64,
    /// After how long at the most.
    pub longest_backoff_ms: u64,
    /// For how long an agent may hold leases with one priority; nothing is no such bound.
    pub lease_time_ms: Option<u64>,
    /// For how long an agent may leave untouched what it has a lease to change; nothing is no such bound.
    pub idle_ms: Option<u64>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            ttl_ms: 60_000,
            longest_ttl_ms: 300_000,
            wait_ms: 60_000,
            longest_wait_ms: 600_000,
            backoff_ms: 250,
            longest_backoff_ms: 30_000,
            lease_time_ms: None,
            idle_ms: None,
        }
    }
}

impl AgentSettings {
    /// The shortest lease. What is shorter ends before its first heartbeat can be in time.
    pub const SHORTEST_TTL_MS: u64 = 1_000;
    /// No wait and no lease of an agent can be longer, whatever is configured.
    pub const LONGEST_MS: u64 = 86_400_000;

    /// What the kernel has to know of it.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            backoff: (Span::from_millis(self.backoff_ms), Span::from_millis(self.longest_backoff_ms)),
            lease_time: self.lease_time_ms.map(Span::from_millis),
            idle: self.idle_ms.map(Span::from_millis),
            ..Limits::default()
        }
    }
}
