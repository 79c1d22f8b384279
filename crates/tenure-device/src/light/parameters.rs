//! How an effect looks: brightness, speed and the others.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tenure_control::problem::{Problem, ProblemCode};

use super::colour;
use super::colour::{PALETTES, Palette, Rgb};
use crate::device_command_fields::DeviceCommandFields;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// How bright: 0 is dark.
    pub brightness: u8,
    /// How fast, 1 to 100.
    pub speed: u8,
    pub palette: Palette,
    /// Where on the wheel, or how far the palette is turned.
    pub hue: u8,
    /// How much colour: 0 is white.
    pub saturation: u8,
    /// How much of what the effect is about.
    pub intensity: u8,
    /// Whether both halves of the strip show the same, from the middle outwards.
    pub mirror: bool,
    /// Whether the strip runs the other way.
    pub reverse: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            brightness: 128,
            speed: NORMAL_SPEED,
            palette: Palette::default(),
            hue: 0,
            saturation: 255,
            intensity: 128,
            mirror: false,
            reverse: false,
        }
    }
}

/// The speed at which effects take their own time.
pub const NORMAL_SPEED: u8 = 50;

pub enum ParameterRange {
    Number(u8, u8),
    Palette,
    /// `true` or `false`.
    Flag,
}

/// A row of the table of parameters.
pub struct ParameterDefinition {
    pub name: &'static str,
    pub range: ParameterRange,
    pub summary: &'static str,
}

const fn row(name: &'static str, range: ParameterRange, summary: &'static str) -> ParameterDefinition {
    ParameterDefinition { name, range, summary }
}

pub const PARAMETERS: &[ParameterDefinition] = &[
    row("brightness", ParameterRange::Number(0, 255), "How bright; 0 is dark"),
    row("speed", ParameterRange::Number(1, 100), "How fast; 50 is the effect's own speed, 100 twice that"),
    row("palette", ParameterRange::Palette, "Which colours"),
    row("hue", ParameterRange::Number(0, 255), "Where on the wheel; with a palette, how far it is turned"),
    row("saturation", ParameterRange::Number(0, 255), "How much colour; 0 is white"),
    row("intensity", ParameterRange::Number(0, 255), "How much of what the effect is about"),
    row("mirror", ParameterRange::Flag, "Both halves show the same, from the middle outwards"),
    row("reverse", ParameterRange::Flag, "The strip runs the other way"),
];

impl Parameters {
    /// These, with what the fields change. None of it counts if one of them is wrong.
    pub fn with_changes(&self, mut fields: DeviceCommandFields) -> Result<Self, Problem> {
        let names = PARAMETERS.iter().map(|row| row.name).collect::<Vec<_>>();
        if fields.is_empty() {
            let message = format!("There is nothing to change; send at least one of: {}", names.join(", "));
            return Err(Problem::new(ProblemCode::MissingField, message));
        }
        let mut changed = self.clone();
        for row in PARAMETERS {
            match row.range {
                ParameterRange::Number(least, max) => {
                    if let Some(number) = fields.byte(row.name, least..=max)? {
                        *changed.number(row.name) = number;
                    }
                }
                ParameterRange::Palette => {
                    if let Some(name) = fields.text(row.name)? {
                        changed.palette = palette_named(row.name, &name)?;
                    }
                }
                ParameterRange::Flag => {
                    if let Some(flag) = fields.flag(row.name)? {
                        *changed.flag(row.name) = flag;
                    }
                }
            }
        }
        fields.finish(&names)?;
        Ok(changed)
    }

    fn number(&mut self, name: &str) -> &mut u8 {
        match name {
            "brightness" => &mut self.brightness,
            "speed" => &mut self.speed,
            "hue" => &mut self.hue,
            "saturation" => &mut self.saturation,
            _ => &mut self.intensity,
        }
    }

    fn flag(&mut self, name: &str) -> &mut bool {
        if name == "mirror" { &mut self.mirror } else { &mut self.reverse }
    }

    /// Whether they can have been stored by this program.
    pub fn check(&self) -> Result<(), &'static str> {
        if (1..=100).contains(&self.speed) { Ok(()) } else { Err("`speed` must be 1 to 100") }
    }

    pub fn to_json(&self) -> Map<String, Value> {
        let value = json!({
            "brightness": self.brightness,
            "speed": self.speed,
            "palette": self.palette.name(),
            "hue": self.hue,
            "saturation": self.saturation,
            "intensity": self.intensity,
            "mirror": self.mirror,
            "reverse": self.reverse,
        });
        value.as_object().cloned().unwrap_or_default()
    }

    /// The one colour of effects that have one.
    pub fn solid_colour(&self) -> Rgb {
        Rgb::from_hue(self.hue, self.saturation)
    }

    /// The palette's colour at a place on its circle.
    pub fn palette_colour(&self, place: u8) -> Rgb {
        self.palette.colour(place.wrapping_add(self.hue)).saturated(self.saturation)
    }
}

fn palette_named(field: &str, name: &str) -> Result<Palette, Problem> {
    Palette::named(name).ok_or_else(|| {
        let message = format!("names no palette; these are there: {}", colour::names());
        Problem::of_field(ProblemCode::InvalidValue, field, message)
    })
}

/// What each of them can be, as programs see it.
pub fn ranges() -> Value {
    let palettes = PALETTES.iter().map(|row| row.name).collect::<Vec<_>>();
    let range = |row: &ParameterDefinition| match row.range {
        ParameterRange::Number(min, max) => json!({ "min": min, "max": max }),
        ParameterRange::Palette => json!({ "oneOf": palettes }),
        ParameterRange::Flag => json!({ "oneOf": [false, true] }),
    };
    PARAMETERS.iter().map(|row| (row.name.to_owned(), range(row))).collect::<Map<_, _>>().into()
}
