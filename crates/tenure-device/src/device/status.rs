//! What the device is, what it does, and what it shows.

use serde_json::{Value, json};
use tenure_core::kernel::Tick;

use super::VirtualDevice;
use crate::light;
use crate::light::settings::MAX_FPS;
use crate::light::{EFFECTS, LEDS, PALETTES, Pixels, PlaybackState};
use crate::render_frame::{FORMAT, FRAME_BYTES, VERSION};

/// What all lights show at a moment, and what that comes from.
pub struct DisplayedFrame {
    /// `effect`, `stream` or `stopped`.
    pub source: &'static str,
    /// Which frame it is, of the effect or of the stream.
    pub sequence: u64,
    /// When it began, in the light's own time; for a stream the light's time now.
    pub position_ms: u64,
    pub pixels: Pixels,
}

impl VirtualDevice {
    /// What all lights show at `now`.
    pub fn displayed_frame(&self, now: Tick) -> DisplayedFrame {
        let limit = self.settings.brightness_limit;
        let position_ms = self.transport.position_ms(now);
        if let Some((sequence, colours)) = self.stream.current_frame(now) {
            let pixels = light::render_streamed_frame(colours, limit);
            return DisplayedFrame {
                source: "stream",
                sequence: sequence.unwrap_or(0).into(),
                position_ms,
                pixels,
            };
        }
        if self.transport.state() == PlaybackState::Stopped {
            return DisplayedFrame { source: "stopped", sequence: 0, position_ms, pixels: light::DARK };
        }
        let moment = self.transport.frame_time(now, self.parameters.speed, self.settings.max_fps);
        let pixels = light::render_effect(self.effect, &self.parameters, moment.motion, limit);
        DisplayedFrame {
            source: "effect",
            sequence: moment.frame,
            position_ms: moment.position / 1_000,
            pixels,
        }
    }

    pub(super) fn frame_json(&mut self, now: Tick) -> Value {
        let shown = self.displayed_frame(now);
        self.counters.frames_rendered += 1;
        self.rendered.count(now);
        json!({
            "source": shown.source,
            "sequence": shown.sequence,
            "positionMs": shown.position_ms,
            "timeMs": self.uptime.at(now).0,
            "ledCount": LEDS,
            "encoding": "hex",
            "rgb": hex::encode(shown.pixels),
        })
    }

    pub(super) fn info(&self) -> Value {
        json!({
            "name": self.settings.device_name,
            "model": "Tenure virtual light",
            "kind": "virtual",
            "firmware": self.firmware.version,
            "project": self.firmware.project,
            "ledCount": LEDS,
            "maxFps": MAX_FPS,
            "effects": EFFECTS.len(),
            "palettes": PALETTES.len(),
            "stream": { "version": VERSION, "format": FORMAT, "frameBytes": FRAME_BYTES },
        })
    }

    pub(super) fn status(&self, now: Tick) -> Value {
        let counters = self.counters;
        let requested_fps = self.stream.target_fps().unwrap_or(self.settings.max_fps);
        let rendered = match self.stream.is_active() {
            true => self.stream.measured_fps(now),
            false => self.rendered.per_second(now),
        };
        json!({
            "name": self.settings.device_name,
            "uptimeMs": now.since(self.started_at).as_millis(),
            "millis": self.uptime.at(now).0,
            "firmware": self.firmware.version,
            "nextFirmware": self.next_firmware.as_ref().map(|image| &image.version),
            "effectId": self.effect.number(),
            "effectName": self.effect.name(),
            "brightness": self.parameters.brightness,
            "brightnessLimit": self.settings.brightness_limit,
            "fps": { "asked": requested_fps, "rendered": rendered },
            "transport": self.transport.to_json(now),
            "stream": self.stream.status(self.uptime, now),
            "counters": {
                "commands": counters.commands,
                "commandsRefused": counters.commands_rejected,
                "framesRendered": counters.frames_rendered,
                "restarts": counters.restarts,
            },
        })
    }
}
