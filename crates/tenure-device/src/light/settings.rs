//! What outlives a restart, besides presets and firmware.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure_control::problem::{Problem, ProblemCode};

use super::effect::{EFFECTS, Effect};
use super::preset::check_name;
use crate::device_command_fields::{DeviceCommandFields, number, wrong_type};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    pub device_name: String,
    /// How many frames of an effect there are in a second, at most.
    pub max_fps: u8,
    /// The most brightness that anything shows.
    pub brightness_limit: u8,
    /// Which effect is shown after a start.
    pub power_on_effect: Effect,
    /// How bright it is after a start.
    pub power_on_brightness: u8,
    /// Whether it plays after a start.
    pub power_on_playing: bool,
}

/// The fields, as programs see them.
pub const FIELDS: &[&str] =
    &["deviceName", "maxFps", "brightnessLimit", "powerOnEffect", "powerOnBrightness", "powerOnPlaying"];

/// The most frames that there are in a second.
pub const MAX_FPS: u8 = 240;

impl Default for Settings {
    fn default() -> Self {
        Self {
            device_name: "Tenure light".to_owned(),
            max_fps: 120,
            brightness_limit: 255,
            power_on_effect: Effect::named("rainbow").expect("it is in the table"),
            power_on_brightness: 128,
            power_on_playing: true,
        }
    }
}

impl Settings {
    /// These, with what the fields change. None of it counts if one of them is wrong.
    pub fn with_changes(&self, mut fields: DeviceCommandFields) -> Result<Self, Problem> {
        if fields.is_empty() {
            let message = format!("There is nothing to change; send at least one of: {}", FIELDS.join(", "));
            return Err(Problem::new(ProblemCode::MissingField, message));
        }
        let mut changed = self.clone();
        if let Some(name) = fields.text("deviceName")? {
            check_name("deviceName", &name)?;
            changed.device_name = name;
        }
        if let Some(fps) = fields.byte("maxFps", 1..=MAX_FPS)? {
            changed.max_fps = fps;
        }
        if let Some(limit) = fields.byte("brightnessLimit", 1..=255)? {
            changed.brightness_limit = limit;
        }
        if let Some(value) = fields.take("powerOnEffect") {
            changed.power_on_effect = parse_effect("powerOnEffect", &value)?;
        }
        if let Some(brightness) = fields.byte("powerOnBrightness", 0..=255)? {
            changed.power_on_brightness = brightness;
        }
        if let Some(is_playing) = fields.flag("powerOnPlaying")? {
            changed.power_on_playing = is_playing;
        }
        fields.finish(FIELDS)?;
        Ok(changed)
    }

    /// Whether this program can have stored them.
    pub fn check(&self) -> Result<(), &'static str> {
        check_name("deviceName", &self.device_name).map_err(|_| "`deviceName` is no name")?;
        if !(1..=MAX_FPS).contains(&self.max_fps) {
            return Err("`maxFps` must be 1 to 240");
        }
        if self.brightness_limit == 0 {
            return Err("`brightnessLimit` must be 1 to 255");
        }
        Ok(())
    }

    pub fn to_json(&self) -> Value {
        json!({
            "deviceName": self.device_name,
            "maxFps": self.max_fps,
            "brightnessLimit": self.brightness_limit,
            "powerOnEffect": self.power_on_effect.name(),
            "powerOnBrightness": self.power_on_brightness,
            "powerOnPlaying": self.power_on_playing,
        })
    }
}

/// An effect that is said by its name or its number.
pub fn parse_effect(field: &str, value: &Value) -> Result<Effect, Problem> {
    let last = EFFECTS.len() as u64 - 1;
    match value {
        Value::String(name) => Effect::named(name).ok_or_else(|| {
            Problem::of_field(
                ProblemCode::NotFound,
                field,
                "names no effect; effects.list says which there are",
            )
        }),
        Value::Number(_) => {
            let effect = number(field, value, 0..=last).map(Effect::numbered)?;
            Ok(effect.expect("the range is the table's"))
        }
        _ => Err(wrong_type(field, format_args!("an effect's name or its number, 0 to {last}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(value: Value) -> Result<Settings, Problem> {
        Settings::default()
            .with_changes(DeviceCommandFields::new(value.as_object().expect("an object").clone()))
    }

    #[test]
    fn settings_that_are_not_sent_stay_unchanged() {
        let changed = change(json!({ "maxFps": 240, "powerOnEffect": 3 })).expect("both are fine");
        assert_eq!((changed.max_fps, changed.power_on_effect.name()), (240, "breathe"));
        assert_eq!(changed.device_name, Settings::default().device_name);
    }

    #[test]
    fn invalid_settings_are_rejected_with_their_field() {
        let cases = [
            (json!({}), ProblemCode::MissingField),
            (json!({ "maxFps": 0 }), ProblemCode::OutOfRange),
            (json!({ "maxFps": 241 }), ProblemCode::OutOfRange),
            (json!({ "maxFps": "60" }), ProblemCode::InvalidType),
            (json!({ "brightnessLimit": 0 }), ProblemCode::OutOfRange),
            (json!({ "deviceName": "" }), ProblemCode::InvalidValue),
            (json!({ "powerOnEffect": "no such" }), ProblemCode::NotFound),
            (json!({ "powerOnEffect": 17 }), ProblemCode::OutOfRange),
            (json!({ "powerOnEffect": null }), ProblemCode::InvalidType),
            (json!({ "powerOnPlaying": 1 }), ProblemCode::InvalidType),
            (json!({ "maxfps": 60 }), ProblemCode::UnknownField),
        ];
        for (fields, code) in cases {
            assert_eq!(change(fields.clone()).expect_err("it is wrong").code, code, "{fields}");
        }
    }

    #[test]
    fn shown_settings_are_exactly_the_settable_ones() {
        let shown = Settings::default().to_json();
        let is_shown = |name: &&str| shown.get(name).is_some();
        assert!(
            FIELDS.iter().all(is_shown) && shown.as_object().map(serde_json::Map::len) == Some(FIELDS.len())
        );
        assert_eq!(change(shown).expect("what is shown can be sent back"), Settings::default());
    }
}
