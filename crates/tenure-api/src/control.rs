//! Who has the device.

use serde::{Deserialize, Serialize};

/// The control lease, as `control.status` and `GET /api/v1/control/status` return it, and as part of what `control.acquire`
/// returns and of `control.stateChanged`. The token is nowhere in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlStatus {
    /// Whether a control lease is active.
    pub active: bool,
    /// Names the lease.
    pub lease_id: String,
    /// What it is about: `global`.
    pub scope: String,
    /// How its owner calls itself.
    pub owner_client_name: String,
    /// Which instance of it.
    pub owner_instance_id: String,
    /// The number of its connection.
    pub owner_ws_client_id: u32,
    /// How long it still lasts, unless a heartbeat comes.
    pub remaining_ms: u32,
    /// How long it lasts from each heartbeat.
    pub ttl_ms: u32,
    /// Interval in milliseconds at which the server requests heartbeats.
    pub heartbeat_interval_ms: u32,
    /// Whether another client can take it over: never.
    pub takeover_allowed: bool,
}
