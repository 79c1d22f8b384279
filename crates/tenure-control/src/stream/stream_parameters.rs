//! How a stream begins, and why it ends.

use tenure_core::kernel::TickDuration;

use crate::device_command_fields::DeviceCommandFields;
use crate::light::LEDS;
use crate::problem::{Problem, ProblemCode};
use crate::render_frame::{FORMAT, VERSION};

/// What a stream is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamParameters {
    /// How many frames a second its owner means to send.
    pub target_fps: u8,
    /// How long it lasts without a frame.
    pub stale_timeout: TickDuration,
}

const FIELDS: &[&str] = &["targetFps", "staleTimeoutMs", "ledCount", "format", "version"];

impl StreamParameters {
    /// What the fields of `render.stream.start` say. They may also say what the sender takes the device for.
    pub fn parse(mut fields: DeviceCommandFields) -> Result<Self, Problem> {
        let target_fps = fields.byte("targetFps", 1..=240)?.unwrap_or(120);
        let timeout = fields.number("staleTimeoutMs", 250..=5_000)?.unwrap_or(750);
        for (name, ours) in [("ledCount", LEDS), ("format", FORMAT.into()), ("version", VERSION.into())] {
            let theirs = fields.number_u32(name, 0..=u32::MAX)?;
            if theirs.is_some_and(|theirs| theirs != ours) {
                let message = format!("does not fit this device, for which it is {ours}");
                return Err(Problem::of_field(ProblemCode::StreamContractMismatch, name, message));
            }
        }
        fields.finish(FIELDS)?;
        Ok(Self { target_fps, stale_timeout: TickDuration::from_millis(timeout) })
    }
}

tenure_core::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum StopReason {
        /// The lease is another's, or nobody's.
        LeaseLost = "lease_lost",
        OwnerDisconnected = "owner_disconnected",
        /// No frame came for too long.
        StaleTimeout = "stale_timeout",
        /// The owner stopped it, or started another one, or the device was started again.
        ClientStop = "client_stop",
    }
}
