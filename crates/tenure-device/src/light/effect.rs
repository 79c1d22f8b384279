//! Which effects there are.

use serde::{Deserialize, Serialize};

use super::colour::Rgb;
use super::effects;
use super::parameters::Parameters;

/// What an effect is: the parameters, the time in microseconds, the position; and out comes a colour.
pub type EffectFunction = fn(&Parameters, u64, u32) -> Rgb;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Effect(usize);

/// A row of the table. Its place in the table is its number, which never changes: new ones come at the end.
pub struct EffectDefinition {
    pub name: &'static str,
    pub summary: &'static str,
    /// Which parameters change it, besides brightness.
    pub uses: &'static [&'static str],
    paint: EffectFunction,
}

const fn row(
    name: &'static str,
    summary: &'static str,
    uses: &'static [&'static str],
    paint: EffectFunction,
) -> EffectDefinition {
    EffectDefinition { name, summary, uses, paint }
}

const PLAIN: &[&str] = &["hue", "saturation"];
const PLAIN_MOVING: &[&str] = &["speed", "hue", "saturation", "intensity"];
const STILL: &[&str] = &["palette", "hue", "saturation"];
const MOVING: &[&str] = &["speed", "palette", "hue", "saturation"];
const ALL: &[&str] = &["speed", "palette", "hue", "saturation", "intensity"];

pub const EFFECTS: &[EffectDefinition] = &[
    row("solid", "One colour", PLAIN, effects::solid),
    row("gradient", "The palette along the strip", STILL, effects::gradient),
    row("rainbow", "The palette, running", ALL, effects::rainbow),
    row("breathe", "One colour that breathes", PLAIN_MOVING, effects::breathe),
    row("strobe", "Short flashes, at most two a second", PLAIN_MOVING, effects::strobe),
    row("chase", "Every few lights one, moving on", ALL, effects::chase),
    row("comet", "A head with a tail", ALL, effects::comet),
    row("scanner", "A light that goes there and back", ALL, effects::scanner),
    row("wipe", "One colour after the other covers the strip", MOVING, effects::wipe),
    row("wave", "Light and dark, travelling", ALL, effects::wave),
    row("plasma", "Slow clouds of colour", ALL, effects::plasma),
    row("ripple", "Rings that grow", ALL, effects::ripple),
    row("ocean", "Swells with foam", ALL, effects::ocean),
    row("fire", "Flames", ALL, effects::fire),
    row("twinkle", "Stars that come and go", ALL, effects::twinkle),
    row("sparkle", "Flashes on a dark ground", PLAIN_MOVING, effects::sparkle),
    row("rain", "Drops that fall", ALL, effects::rain),
];

impl Effect {
    pub fn named(name: &str) -> Option<Self> {
        EFFECTS.iter().position(|row| row.name == name).map(Self)
    }

    pub fn numbered(number: u64) -> Option<Self> {
        usize::try_from(number).ok().filter(|&number| number < EFFECTS.len()).map(Self)
    }

    pub const fn number(self) -> usize {
        self.0
    }

    pub fn definition(self) -> &'static EffectDefinition {
        &EFFECTS[self.0]
    }

    pub fn name(self) -> &'static str {
        self.definition().name
    }

    pub fn colour(self, look: &Parameters, time: u64, position: u32) -> Rgb {
        (self.definition().paint)(look, time, position)
    }
}

impl From<Effect> for String {
    fn from(effect: Effect) -> Self {
        effect.name().to_owned()
    }
}

impl TryFrom<String> for Effect {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::named(&name).ok_or("there is no effect of this name")
    }
}
