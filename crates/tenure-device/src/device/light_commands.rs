//! Effects, parameters, presets, transport and settings.

use serde_json::{Value, json};
use tenure_control::problem::{Problem, ProblemCode};
use tenure_core::kernel::{Tick, TickDuration};

use super::{CommandReply, VirtualDevice, reply, reply_after_store};
use crate::device_command_fields::{DeviceCommandFields, required};
use crate::light::parameters::ranges;
use crate::light::preset::{MAX_PRESETS, check_id, check_name, id_from_name};
use crate::light::settings::parse_effect;
use crate::light::{EFFECTS, Parameters, PlaybackState, Preset};

/// The farthest position that can be gone to: a day.
const MAX_POSITION_MS: u64 = 86_400_000;

impl VirtualDevice {
    pub(super) fn list_effects(&self) -> Value {
        let effect = |(number, row): (usize, &crate::light::effect::EffectDefinition)| json!({ "id": number, "name": row.name, "summary": row.summary, "uses": row.uses });
        let effects = EFFECTS.iter().enumerate().map(effect).collect::<Vec<_>>();
        json!({ "effects": effects, "count": EFFECTS.len(), "current": self.effect.number() })
    }

    pub(super) fn current_effect(&self) -> Value {
        json!({
            "effectId": self.effect.number(),
            "effectName": self.effect.name(),
            "count": EFFECTS.len(),
            "parameters": self.parameters.to_json(),
        })
    }

    pub(super) fn set_effect(&mut self, mut fields: DeviceCommandFields) -> Result<CommandReply, Problem> {
        let what = "an effect's number or its name";
        let effect = parse_effect("effectId", &required(fields.take("effectId"), "effectId", what)?)?;
        fields.finish(&["effectId"])?;
        self.effect = effect;
        reply(self.current_effect())
    }

    pub(super) fn parameters_with_ranges(&self) -> Value {
        let mut shown = self.parameters.to_json();
        shown.insert("ranges".to_owned(), ranges());
        shown.into()
    }

    pub(super) fn set_parameters(
        &mut self,
        fields: DeviceCommandFields,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        let changed = self.parameters.with_changes(fields)?;
        self.change_parameters(changed, now);
        reply(self.parameters.to_json().into())
    }

    fn change_parameters(&mut self, changed: Parameters, now: Tick) {
        self.transport.advance(now, self.parameters.speed);
        self.parameters = changed;
    }

    pub(super) fn list_presets(&self) -> Value {
        let all = self.presets.all().iter().map(Preset::to_json).collect::<Vec<_>>();
        json!({ "presets": all, "count": all.len(), "max": MAX_PRESETS })
    }

    pub(super) fn get_preset(&mut self, fields: DeviceCommandFields) -> Result<CommandReply, Problem> {
        let id = preset_id(fields)?;
        reply(self.presets.get(&id)?.to_json())
    }

    pub(super) fn save_preset(&mut self, mut fields: DeviceCommandFields) -> Result<CommandReply, Problem> {
        let name = required(fields.text("name")?, "name", "what the preset shall be called")?;
        let id = fields.text("id")?;
        let may_replace = fields.flag("replace")?.unwrap_or(false);
        fields.finish(&["name", "id", "replace"])?;
        check_name("name", &name)?;
        let id = id.map_or_else(|| id_from_name(&name), |id| check_id(&id).map(|()| id))?;
        let preset = Preset { id, name, effect: self.effect, parameters: self.parameters.clone() };
        let shown = preset.to_json();
        self.presets.save(preset, may_replace)?;
        reply_after_store(shown)
    }

    pub(super) fn load_preset(
        &mut self,
        fields: DeviceCommandFields,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        let preset = self.presets.get(&preset_id(fields)?)?.clone();
        let shown = preset.to_json();
        self.effect = preset.effect;
        self.change_parameters(preset.parameters, now);
        reply(shown)
    }

    pub(super) fn delete_preset(&mut self, fields: DeviceCommandFields) -> Result<CommandReply, Problem> {
        let id = preset_id(fields)?;
        self.presets.delete(&id)?;
        reply_after_store(json!({ "deleted": true, "id": id }))
    }

    pub(super) fn start_playback(
        &mut self,
        mut fields: DeviceCommandFields,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        let position = fields.number("positionMs", 0..=MAX_POSITION_MS)?;
        fields.finish(&["positionMs"])?;
        let position = position.map(|millis| TickDuration::from_millis(millis).0);
        self.transport.play(position, now, self.parameters.speed);
        reply(self.transport.to_json(now))
    }

    pub(super) fn pause_playback(
        &mut self,
        fields: DeviceCommandFields,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        fields.finish(&[])?;
        if self.transport.state() == PlaybackState::Stopped {
            let message = "The light is stopped, so there is nothing to pause; play first";
            return Err(Problem::new(ProblemCode::Conflict, message));
        }
        self.transport.pause(now, self.parameters.speed);
        reply(self.transport.to_json(now))
    }

    pub(super) fn stop_playback(
        &mut self,
        fields: DeviceCommandFields,
        now: Tick,
    ) -> Result<CommandReply, Problem> {
        fields.finish(&[])?;
        self.transport.stop(now);
        reply(self.transport.to_json(now))
    }

    pub(super) fn set_settings(&mut self, fields: DeviceCommandFields) -> Result<CommandReply, Problem> {
        self.settings = self.settings.with_changes(fields)?;
        reply_after_store(self.settings.to_json())
    }
}

fn preset_id(mut fields: DeviceCommandFields) -> Result<String, Problem> {
    let id = required(fields.text("id")?, "id", "the preset's id")?;
    fields.finish(&["id"])?;
    Ok(id)
}
