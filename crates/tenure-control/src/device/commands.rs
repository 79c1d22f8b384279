//! Which function a command is.

use serde_json::{Map, Value, json};
use tenure_core::kernel::Tick;

use super::{Done, VirtualDevice};
use crate::fields::Fields;
use crate::problem::{Problem, ProblemCode};
use crate::stream::{StopReason, Terms};

/// An answer to a command that leaves nothing to store.
pub(super) fn answer(data: Value) -> Result<Done, Problem> {
    Ok(Done { data, must_store: false })
}

/// An answer that must not be given before what changed is on the disk.
pub(super) fn stored_answer(data: Value) -> Result<Done, Problem> {
    Ok(Done { data, must_store: true })
}

impl VirtualDevice {
    pub(super) fn obey(
        &mut self,
        command: &str,
        fields: Map<String, Value>,
        now: Tick,
    ) -> Result<Done, Problem> {
        let fields = Fields::new(fields);
        match command {
            "device.info" => fields.finish(&[]).and_then(|()| answer(self.info())),
            "device.status" => fields.finish(&[]).and_then(|()| answer(self.status(now))),
            "device.frame" => fields.finish(&[]).and_then(|()| answer(self.shown_frame(now))),
            "device.restart" => self.obey_restart(fields, now),
            "effects.list" => fields.finish(&[]).and_then(|()| answer(self.effects())),
            "effects.getCurrent" => fields.finish(&[]).and_then(|()| answer(self.current_effect())),
            "effects.setCurrent" => self.set_effect(fields),
            "parameters.get" => fields.finish(&[]).and_then(|()| answer(self.shown_parameters())),
            "parameters.set" => self.set_parameters(fields, now),
            "presets.list" => fields.finish(&[]).and_then(|()| answer(self.list_presets())),
            "presets.get" => self.get_preset(fields),
            "presets.save" => self.save_preset(fields),
            "presets.load" => self.load_preset(fields, now),
            "presets.delete" => self.delete_preset(fields),
            "transport.status" => fields.finish(&[]).and_then(|()| answer(self.transport.shown(now))),
            "transport.play" => self.play(fields, now),
            "transport.pause" => self.pause(fields, now),
            "transport.stop" => self.stop(fields, now),
            "settings.get" => fields.finish(&[]).and_then(|()| answer(self.settings.shown())),
            "settings.set" => self.set_settings(fields),
            "render.stream.start" => self.start_stream(fields, now),
            "render.stream.stop" => self.obey_stop_stream(fields, now),
            "render.stream.status" => fields.finish(&[]).and_then(|()| answer(self.stream_status(now))),
            "ota.version" => fields.finish(&[]).and_then(|()| answer(self.firmware_version())),
            "ota.status" => fields.finish(&[]).and_then(|()| answer(self.upload_status())),
            "ota.begin" => self.begin_upload(fields, now),
            "ota.chunk" => self.take_piece(fields, now),
            "ota.finish" => self.finish_upload(fields, now),
            "ota.abort" => self.abort_upload(fields),
            _ => {
                let message = "This device has no such command; `tenure control matrix` lists all of them";
                Err(Problem::new(ProblemCode::UnknownCommand, message))
            }
        }
    }

    fn obey_restart(&mut self, fields: Fields, now: Tick) -> Result<Done, Problem> {
        fields.finish(&[])?;
        let has_new_firmware = self.next_firmware.is_some();
        self.restart(now);
        let data = json!({ "restarted": true, "firmware": self.firmware.version });
        if has_new_firmware { stored_answer(data) } else { answer(data) }
    }

    fn start_stream(&mut self, fields: Fields, now: Tick) -> Result<Done, Problem> {
        let terms = Terms::read(fields)?;
        self.stream.start(terms, now);
        answer(self.stream_status(now))
    }

    fn obey_stop_stream(&mut self, fields: Fields, now: Tick) -> Result<Done, Problem> {
        fields.finish(&[])?;
        if !self.stream.stop(StopReason::ClientStop, now) {
            return Err(self.stream.not_active());
        }
        answer(self.stream_status(now))
    }

    fn stream_status(&self, now: Tick) -> Value {
        self.stream.status(self.uptime, now)
    }
}
