//! Who has the device.

use serde::{Deserialize, Serialize};

/// The control lease, as `GET /api/v1/control/status` tells it. The token is nowhere in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlStatus {
    /// Whether somebody has it.
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
    /// How often its owner is asked for one.
    pub heartbeat_interval_ms: u32,
    /// Whether somebody else can take it over: never.
    pub takeover_allowed: bool,
}
