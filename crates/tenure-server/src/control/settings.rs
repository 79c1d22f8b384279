//! What can be chosen about the device and its control.

use std::path::PathBuf;

use super::gateway::GatewaySettings;

#[derive(Debug, Clone)]
pub struct ControlSettings {
    /// How long a control lease lasts from each heartbeat, in milliseconds.
    pub ttl_ms: u32,
    /// How often its owner is asked to send a heartbeat, in milliseconds.
    pub heartbeat_interval_ms: u32,
    /// What the device's clock says when it starts. It has 32 bits: near the end of them, its wrap can be tried.
    pub millis_at_start: u32,
    /// Somebody else's device to stand in front of; nothing is the built-in one.
    pub gateway: Option<GatewaySettings>,
    pub serial: Option<SerialSettings>,
    pub encoder: Option<RotaryEncoderSettings>,
}

impl Default for ControlSettings {
    fn default() -> Self {
        Self {
            ttl_ms: 5_000,
            heartbeat_interval_ms: 1_000,
            millis_at_start: 0,
            gateway: None,
            serial: None,
            encoder: None,
        }
    }
}

impl ControlSettings {
    /// Shorter is no lease here; longer, and the device waits an hour for nobody.
    pub const TTL_MS: std::ops::RangeInclusive<u32> = 1_000..=3_600_000;
    /// More often would be more heartbeats than commands.
    pub const MIN_HEARTBEAT_INTERVAL_MS: u32 = 10;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerialSettings {
    /// Where, such as `/dev/ttyUSB0`. A link under `/dev/serial/by-id` finds it again after it was plugged in elsewhere.
    pub path: PathBuf,
    /// How fast, in bits per second.
    pub baud: u32,
}

impl SerialSettings {
    pub const DEFAULT_BAUD: u32 = 115_200;
    /// What ports can do, from the slowest modem to the fastest adapter.
    pub const BAUD: std::ops::RangeInclusive<u32> = 50..=12_000_000;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotaryEncoderSettings {
    /// Where, such as `/dev/input/event3`.
    pub path: PathBuf,
    pub parameter: String,
    /// By how much with each step. Negative: the other way round.
    pub step: i32,
}

impl RotaryEncoderSettings {
    /// What it moves if nobody chose another.
    pub const DEFAULT_PARAMETER: &str = "brightness";
    /// 32 steps from dark to bright.
    pub const DEFAULT_STEP: i32 = 8;
    /// The largest step, in either direction.
    pub const MAX_STEP: i32 = 255;
}
