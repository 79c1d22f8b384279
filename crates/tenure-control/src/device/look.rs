//! Effects, parameters, presets, transport and settings.

use serde_json::{Value, json};
use tenure_core::kernel::{Span, Tick};

use super::commands::{answer, stored_answer};
use super::{Done, VirtualDevice};
use crate::fields::{Fields, required};
use crate::light::parameters::ranges;
use crate::light::preset::{MOST_PRESETS, check_id, check_name, id_of};
use crate::light::settings::effect_of;
use crate::light::{EFFECTS, Parameters, Playing, Preset};
use crate::problem::{Problem, ProblemCode};

/// The farthest position that can be gone to: a day.
const MOST_POSITION_MS: u64 = 86_400_000;

impl VirtualDevice {
    pub(super) fn effects(&self) -> Value {
        let effect = |(number, row): (usize, &crate::light::effect::EffectRow)| json!({ "id": number, "name": row.name, "summary": row.summary, "uses": row.uses });
        let effects = EFFECTS.iter().enumerate().map(effect).collect::<Vec<_>>();
        json!({ "effects": effects, "count": EFFECTS.len(), "current": self.effect.number() })
    }

    pub(super) fn current_effect(&self) -> Value {
        json!({
            "effectId": self.effect.number(),
            "effectName": self.effect.name(),
            "count": EFFECTS.len(),
            "parameters": self.parameters.shown(),
        })
    }

    pub(super) fn set_effect(&mut self, mut fields: Fields) -> Result<Done, Problem> {
        let what = "an effect's number or its name";
        let effect = effect_of("effectId", &required(fields.take("effectId"), "effectId", what)?)?;
        fields.finish(&["effectId"])?;
        self.effect = effect;
        answer(self.current_effect())
    }

    pub(super) fn shown_parameters(&self) -> Value {
        let mut shown = self.parameters.shown();
        shown.insert("ranges".to_owned(), ranges());
        shown.into()
    }

    pub(super) fn set_parameters(&mut self, fields: Fields, now: Tick) -> Result<Done, Problem> {
        let changed = self.parameters.changed(fields)?;
        self.change_parameters(changed, now);
        answer(self.parameters.shown().into())
    }

    fn change_parameters(&mut self, changed: Parameters, now: Tick) {
        self.transport.settle(now, self.parameters.speed);
        self.parameters = changed;
    }

    pub(super) fn list_presets(&self) -> Value {
        let all = self.presets.all().iter().map(Preset::shown).collect::<Vec<_>>();
        json!({ "presets": all, "count": all.len(), "max": MOST_PRESETS })
    }

    pub(super) fn get_preset(&mut self, fields: Fields) -> Result<Done, Problem> {
        let id = preset_id(fields)?;
        answer(self.presets.get(&id)?.shown())
    }

    pub(super) fn save_preset(&mut self, mut fields: Fields) -> Result<Done, Problem> {
        let name = required(fields.text("name")?, "name", "what the preset shall be called")?;
        let id = fields.text("id")?;
        let may_replace = fields.flag("replace")?.unwrap_or(false);
        fields.finish(&["name", "id", "replace"])?;
        check_name("name", &name)?;
        let id = id.map_or_else(|| id_of(&name), |id| check_id(&id).map(|()| id))?;
        let preset = Preset { id, name, effect: self.effect, parameters: self.parameters.clone() };
        let shown = preset.shown();
        self.presets.save(preset, may_replace)?;
        stored_answer(shown)
    }

    pub(super) fn load_preset(&mut self, fields: Fields, now: Tick) -> Result<Done, Problem> {
        let preset = self.presets.get(&preset_id(fields)?)?.clone();
        let shown = preset.shown();
        self.effect = preset.effect;
        self.change_parameters(preset.parameters, now);
        answer(shown)
    }

    pub(super) fn delete_preset(&mut self, fields: Fields) -> Result<Done, Problem> {
        let id = preset_id(fields)?;
        self.presets.delete(&id)?;
        stored_answer(json!({ "deleted": true, "id": id }))
    }

    pub(super) fn play(&mut self, mut fields: Fields, now: Tick) -> Result<Done, Problem> {
        let position = fields.number("positionMs", 0..=MOST_POSITION_MS)?;
        fields.finish(&["positionMs"])?;
        let position = position.map(|millis| Span::from_millis(millis).0);
        self.transport.play(position, now, self.parameters.speed);
        answer(self.transport.shown(now))
    }

    pub(super) fn pause(&mut self, fields: Fields, now: Tick) -> Result<Done, Problem> {
        fields.finish(&[])?;
        if self.transport.state() == Playing::Stopped {
            let message = "The light is stopped, so there is nothing to pause; play first";
            return Err(Problem::new(ProblemCode::Conflict, message));
        }
        self.transport.pause(now, self.parameters.speed);
        answer(self.transport.shown(now))
    }

    pub(super) fn stop(&mut self, fields: Fields, now: Tick) -> Result<Done, Problem> {
        fields.finish(&[])?;
        self.transport.stop(now);
        answer(self.transport.shown(now))
    }

    pub(super) fn set_settings(&mut self, fields: Fields) -> Result<Done, Problem> {
        self.settings = self.settings.changed(fields)?;
        stored_answer(self.settings.shown())
    }
}

fn preset_id(mut fields: Fields) -> Result<String, Problem> {
    let id = required(fields.text("id")?, "id", "the preset's id")?;
    fields.finish(&["id"])?;
    Ok(id)
}
