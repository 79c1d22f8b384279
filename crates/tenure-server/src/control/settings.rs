//! What is configured of the control face.

/// What is configured of the control face.
#[derive(Debug, Clone)]
pub struct ControlSettings {
    /// How long a lease lasts after each heartbeat.
    pub ttl_ms: u32,
    /// How often a client is told to send one.
    pub heartbeat_interval_ms: u32,
    /// What the device's clock says at its start. It wraps at 2^32 ms; so that can be tried.
    pub millis_at_start: u32,
}

impl Default for ControlSettings {
    fn default() -> Self {
        Self { ttl_ms: 5_000, heartbeat_interval_ms: 1_000, millis_at_start: 0 }
    }
}
