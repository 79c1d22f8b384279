//! Which function a command is.

use serde_json::{Map, Value, json};
use tenure_core::kernel::Tick;

use super::{CommandReply, VirtualDevice};
use crate::device_command_fields::DeviceCommandFields;
use crate::problem::{Problem, ProblemCode};
use crate::stream::{StopReason, StreamParameters};

/// An answer to a command that leaves nothing to store.
pub(super) fn reply(data: Value) -> Result<CommandReply, Problem> {
    Ok(CommandReply { data, must_store: false })
}

/// An answer that must not be given before what changed is on the disk.
pub(super) fn reply_after_store(data: Value) -> Result<CommandReply, Problem> {
    Ok(CommandReply { data, must_store: true })
}

impl VirtualDevice {
    pub(super) fn dispatch(
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
