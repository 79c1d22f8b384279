//! The virtual light: a device that needs no hardware. It carries out every command of the table that is the device's own.
//!
//! ```text
//! commands         which function a command is
//! look             effects, parameters, presets, transport, settings
//! status           what the device is, does and shows
//! firmware_upload  firmware in pieces
//! ```
//!
//! Whoever calls has the pass of a command looked at again right before: this is the point that all commands go through,
//! one after the other. Everything that is shown follows from what was stored, the commands and their ticks.

mod dispatch;
mod firmware_upload;
mod light_commands;
mod status;

use serde_json::{Map, Value, json};
use tenure_core::kernel::Tick;

use crate::device_clock::DeviceClock;
use crate::firmware::FirmwareInfo;
use crate::light::{Effect, Parameters, Playback, Presets, Settings};
use crate::problem::Problem;
use crate::rate_meter::RateMeter;
use crate::stream::RenderStream;
use dispatch::reply_after_store;
use firmware_upload::FirmwareUpload;

pub use crate::persistent_state::PersistentState;
pub use crate::stream::StopReason;
pub use firmware_upload::{IDLE_TIMEOUT, MAX_CHUNK_BYTES};
pub use status::DisplayedFrame;

pub struct VirtualDevice {
    settings: Settings,
    presets: Presets,
    firmware: FirmwareInfo,
    next_firmware: Option<FirmwareInfo>,
    effect: Effect,
    parameters: Parameters,
    transport: Playback,
    stream: RenderStream,
    upload: FirmwareUpload,
    uptime: DeviceClock,
    started_at: Tick,
    rendered: RateMeter,
    counters: Counters,
}

/// What happened since the device was made.
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    commands: u64,
    commands_rejected: u64,
    frames_rendered: u64,
    restarts: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CommandReply {
    pub data: Value,
    /// Whether [`VirtualDevice::persistent_state`] changed, and must be on the disk before the answer.
    pub must_store: bool,
}

impl VirtualDevice {
    /// A device that starts with what was stored. Firmware that was waiting for a start runs from now on.
    pub fn new(stored: PersistentState, uptime: DeviceClock) -> Self {
        let PersistentState { settings, presets, firmware, next_firmware } = stored;
        let is_playing = settings.power_on_playing;
        Self {
            effect: settings.power_on_effect,
            parameters: power_on_parameters(&settings),
            transport: Playback::new(is_playing, uptime.started()),
            settings,
            presets,
            firmware: next_firmware.unwrap_or(firmware),
            next_firmware: None,
            stream: RenderStream::default(),
            upload: FirmwareUpload::default(),
            uptime,
            started_at: uptime.started(),
            rendered: RateMeter::default(),
            counters: Counters::default(),
        }
    }

    /// Carries out a command: any of the table but those about the lease, about who speaks, and `ota.upload` and
    /// `ota.token(s)`, which are about requests. A command that is refused has changed nothing that is shown or stored.
    pub fn execute(
        &mut self,
        command: &str,
        fields: Map<String, Value>,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        self.stream.expire_if_stale(now);
        let answer = self.dispatch(command, fields, now);
        self.counters.commands += 1;
        if answer.is_err() {
            self.counters.commands_rejected += 1;
        }
        answer
    }

    /// Shows a frame: a binary message whose pass counted.
    pub fn accept_frame(&mut self, bytes: &[u8], now: Tick) -> Result<(), Problem> {
        self.stream.accept_frame(bytes, now)
    }

    /// Ends the render stream. Whether there was one.
    pub fn stop_stream(&mut self, reason: StopReason, now: Tick) -> bool {
        self.stream.stop(reason, now)
    }

    /// When to call [`VirtualDevice::poll_stream_expiry`]: no frame has come for too long then.
    pub fn next_deadline(&self) -> Option<Tick> {
        self.stream.next_deadline()
    }

    /// Ends a stream whose time is over. Each end is told once, also one that a command found before this was called.
    pub fn poll_stream_expiry(&mut self, now: Tick) -> Option<StopReason> {
        self.stream.poll_expiry(now)
    }

    /// Keeps an image that was found to be whole. It runs from the next start on.
    pub fn accept_firmware(&mut self, image: FirmwareInfo, now: Tick) -> Result<CommandReply, Problem> {
        self.stream.expire_if_stale(now);
        let data = json!({ "accepted": true, "next": image.to_json(), "restartRequired": true });
        self.next_firmware = Some(image);
        reply_after_store(data)
    }

    pub fn persistent_state(&self) -> PersistentState {
        PersistentState {
            settings: self.settings.clone(),
            presets: self.presets.clone(),
            firmware: self.firmware.clone(),
            next_firmware: self.next_firmware.clone(),
        }
    }

    /// Takes back what could not be written: `stored` is what the disk holds. What is shown stays as it is.
    pub fn revert_persistent_state(&mut self, stored: PersistentState) {
        let PersistentState { settings, presets, firmware, next_firmware } = stored;
        (self.settings, self.presets) = (settings, presets);
        (self.firmware, self.next_firmware) = (firmware, next_firmware);
    }

    /// Starts again: what is stored stays, what is not is as it was at the first start.
    fn restart(&mut self, now: Tick) {
        self.stream.stop(StopReason::ClientStop, now);
        self.upload = FirmwareUpload::default();
        if let Some(next) = self.next_firmware.take() {
            self.firmware = next;
        }
        self.effect = self.settings.power_on_effect;
        self.parameters = power_on_parameters(&self.settings);
        self.transport = Playback::new(self.settings.power_on_playing, now);
        self.rendered = RateMeter::default();
        self.started_at = now;
        self.counters.restarts += 1;
    }
}

fn power_on_parameters(settings: &Settings) -> Parameters {
    Parameters { brightness: settings.power_on_brightness, ..Parameters::default() }
}
