//! What can be chosen about intents.

use super::lan::Network;

/// What was chosen. The secrets are not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentSettings {
    /// Whether the API takes the lease of a channel or recording itself, and refuses an intent whose lease is held.
    pub api_leases: bool,
    /// How long a session waits for a worker, in milliseconds.
    pub start_within_ms: u64,
    /// How long the lease lasts that the API takes, in milliseconds; then a worker has to have renewed it.
    pub lease_ttl_ms: u64,
    /// Whether only some networks may ask.
    pub lan_guard: bool,
    pub lan_allowed: Vec<Network>,
    /// Proxies whose word on where a request comes from counts.
    pub trusted_proxies: Vec<Network>,
}

impl Default for IntentSettings {
    fn default() -> Self {
        Self {
            api_leases: false,
            start_within_ms: 300_000,
            lease_ttl_ms: 30_000,
            lan_guard: true,
            lan_allowed: Network::private_and_loopback(),
            trusted_proxies: Vec::new(),
        }
    }
}

impl IntentSettings {
    /// Shorter, and no worker can be in time; longer, and nobody remembers what was wanted.
    pub const START_WITHIN_MS: std::ops::RangeInclusive<u64> = 1_000..=86_400_000;
}
