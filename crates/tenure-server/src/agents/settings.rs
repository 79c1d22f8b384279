//! What can be chosen about agents.

use tenure_core::kernel::{Limits, TickDuration};

/// What was chosen. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    /// How long a lease lasts where nobody says.
    pub ttl_ms: u64,
    /// How long at the most: who asks for more gets this.
    pub max_ttl_ms: u64,
    /// How long an agent waits where nobody says.
    pub wait_ms: u64,
    /// How long at the most: who asks for more waits this long.
    pub max_wait_ms: u64,
    /// After how long an agent that died may come back, the first time. Each time it is twice as long.
    pub backoff_ms: u64,
    /// After how long at the most.
    pub max_backoff_ms: u64,
    /// For how long an agent may hold leases with one priority; nothing is no such bound.
    pub lease_time_ms: Option<u64>,
    /// For how long an agent may leave untouched what it has a lease to change; nothing is no such bound.
    pub idle_ms: Option<u64>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            ttl_ms: 60_000,
            max_ttl_ms: 300_000,
            wait_ms: 60_000,
            max_wait_ms: 600_000,
            backoff_ms: 250,
            max_backoff_ms: 30_000,
            lease_time_ms: None,
            idle_ms: None,
        }
    }
}

impl AgentSettings {
    /// The shortest lease. What is shorter ends before its first heartbeat can be in time.
    pub const MIN_TTL_MS: u64 = 1_000;
    /// No wait and no lease of an agent can be longer, whatever is configured.
    pub const MAX_MS: u64 = 86_400_000;

    /// What the kernel has to know of it.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            backoff: (
                TickDuration::from_millis(self.backoff_ms),
                TickDuration::from_millis(self.max_backoff_ms),
            ),
            max_agent_hold_time: self.lease_time_ms.map(TickDuration::from_millis),
            max_agent_idle_time: self.idle_ms.map(TickDuration::from_millis),
            ..Limits::default()
        }
    }
}
