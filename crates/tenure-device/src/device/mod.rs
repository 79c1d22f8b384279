//! The virtual light: executes every device command of the table, without hardware.
//!
//! ```text
//! light_commands   effects, parameters, presets, playback, settings
//! status           identity and state of the device, and the frame that it displays
//! firmware_upload  firmware in chunks
//! ```
//!
//! The caller checks the permit of a command again right before: all commands pass here, one after the other. The display
//! follows from the stored state, the commands and their ticks.

mod firmware_upload;
mod light_commands;
mod status;

use firmware_upload::FirmwareUpload;
pub use firmware_upload::{IDLE_TIMEOUT, MAX_CHUNK_BYTES};
use serde_json::{Map, Value, json};
pub use status::DisplayedFrame;
use tenure_control::device_clock::DeviceClock;
use tenure_control::problem::{Problem, ProblemCode};
use tenure_core::kernel::Tick;

use crate::device_command_fields::DeviceCommandFields;
use crate::firmware::FirmwareInfo;
use crate::light::{Effect, Parameters, Playback, Presets, Settings};
pub use crate::persistent_state::PersistentState;
use crate::rate_meter::RateMeter;
pub use crate::stream::StopReason;
use crate::stream::{RenderStream, StreamParameters};

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

/// An answer to a command that leaves nothing to store.
fn reply(data: Value) -> Result<CommandReply, Problem> {
    Ok(CommandReply { data, must_store: false })
}

/// An answer that must not be given before what changed is on the disk.
fn reply_after_store(data: Value) -> Result<CommandReply, Problem> {
    Ok(CommandReply { data, must_store: true })
}

impl VirtualDevice {
    fn dispatch(
        &mut self,
        command: &str,
        fields: Map<String, Value>,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        let fields = DeviceCommandFields::new(fields);
        match command {
            "device.info" => fields.finish(&[]).and_then(|()| reply(self.info())),
            "device.status" => fields.finish(&[]).and_then(|()| reply(self.status(now))),
            "device.frame" => fields.finish(&[]).and_then(|()| reply(self.frame_json(now))),
            "device.restart" => self.handle_restart(fields, now),
            "effects.list" => fields.finish(&[]).and_then(|()| reply(self.list_effects())),
            "effects.getCurrent" => fields.finish(&[]).and_then(|()| reply(self.current_effect())),
            "effects.setCurrent" => self.set_effect(fields),
            "parameters.get" => fields.finish(&[]).and_then(|()| reply(self.parameters_with_ranges())),
            "parameters.set" => self.set_parameters(fields, now),
            "presets.list" => fields.finish(&[]).and_then(|()| reply(self.list_presets())),
            "presets.get" => self.get_preset(fields),
            "presets.save" => self.save_preset(fields),
            "presets.load" => self.load_preset(fields, now),
            "presets.delete" => self.delete_preset(fields),
            "transport.status" => fields.finish(&[]).and_then(|()| reply(self.transport.to_json(now))),
            "transport.play" => self.start_playback(fields, now),
            "transport.pause" => self.pause_playback(fields, now),
            "transport.stop" => self.stop_playback(fields, now),
            "settings.get" => fields.finish(&[]).and_then(|()| reply(self.settings.to_json())),
            "settings.set" => self.set_settings(fields),
            "render.stream.start" => self.handle_start_stream(fields, now),
            "render.stream.stop" => self.handle_stop_stream(fields, now),
            "render.stream.status" => fields.finish(&[]).and_then(|()| reply(self.stream_status(now))),
            "ota.version" => fields.finish(&[]).and_then(|()| reply(self.firmware_version())),
            "ota.status" => fields.finish(&[]).and_then(|()| reply(self.upload_status())),
            "ota.begin" => self.begin_upload(fields, now),
            "ota.chunk" => self.accept_chunk(fields, now),
            "ota.finish" => self.finish_upload(fields, now),
            "ota.abort" => self.abort_upload(fields),
            _ => {
                let message = "This device has no such command; `tenure control matrix` lists all of them";
                Err(Problem::new(ProblemCode::UnknownCommand, message))
            }
        }
    }

    fn handle_restart(&mut self, fields: DeviceCommandFields, now: Tick) -> Result<CommandReply, Problem> {
        fields.finish(&[])?;
        let has_new_firmware = self.next_firmware.is_some();
        self.restart(now);
        let data = json!({ "restarted": true, "firmware": self.firmware.version });
        if has_new_firmware { reply_after_store(data) } else { reply(data) }
    }

    fn handle_start_stream(
        &mut self,
        fields: DeviceCommandFields,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        let terms = StreamParameters::parse(fields)?;
        self.stream.start(terms, now);
        reply(self.stream_status(now))
    }

    fn handle_stop_stream(
        &mut self,
        fields: DeviceCommandFields,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        fields.finish(&[])?;
        if !self.stream.stop(StopReason::ClientStop, now) {
            return Err(self.stream.not_active_problem());
        }
        reply(self.stream_status(now))
    }

    fn stream_status(&self, now: Tick) -> Value {
        self.stream.status(self.uptime, now)
    }
}
