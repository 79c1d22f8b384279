//! Colours of light, in whole numbers.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rgb {
    pub red: u8,
    pub green: u8,
    pub blue: u8,
}

impl Rgb {
    pub const BLACK: Rgb = Rgb::new(0, 0, 0);
    pub const WHITE: Rgb = Rgb::new(255, 255, 255);

    pub const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self { red, green, blue }
    }

    /// The colour at a place on the wheel: 0 is red, 85 green, 170 blue.
    pub fn from_hue(hue: u8, saturation: u8) -> Self {
        let sixths = u32::from(hue) * 6;
        let (sixth, within) = (sixths >> 8, byte(sixths & 255));
        let low = 255 - saturation;
        let rising = 255 - scale(saturation, 255 - within);
        let falling = 255 - scale(saturation, within);
        match sixth {
            0 => Self::new(255, rising, low),
            1 => Self::new(falling, 255, low),
            2 => Self::new(low, 255, rising),
            3 => Self::new(low, falling, 255),
            4 => Self::new(rising, low, 255),
            _ => Self::new(255, low, falling),
        }
    }

    /// With a part of its light: 255 is all of it, 0 is none.
    pub fn dimmed(self, level: u8) -> Self {
        self.map_channels(|channel| scale(channel, level))
    }

    /// A part of the way to another colour: 0 is this one, 255 the other.
    pub fn interpolate(self, other: Rgb, share: u8) -> Self {
        let mix = |from: u8, to: u8| {
            byte((u32::from(from) * u32::from(255 - share) + u32::from(to) * u32::from(share) + 127) / 255)
        };
        Self::new(mix(self.red, other.red), mix(self.green, other.green), mix(self.blue, other.blue))
    }

    pub fn plus(self, other: Rgb) -> Self {
        Self::new(
            self.red.saturating_add(other.red),
            self.green.saturating_add(other.green),
            self.blue.saturating_add(other.blue),
        )
    }

    /// With less colour: 255 keeps it, 0 leaves as much white as the brightest of the three.
    pub fn saturated(self, saturation: u8) -> Self {
        let brightest = self.red.max(self.green).max(self.blue);
        Self::new(brightest, brightest, brightest).interpolate(self, saturation)
    }

    /// With each of the three changed in the same way.
    pub fn map_channels(self, change: impl Fn(u8) -> u8) -> Self {
        Self::new(change(self.red), change(self.green), change(self.blue))
    }
}

/// A part of a number, rounded: 255 is all of it.
pub fn scale(number: u8, share: u8) -> u8 {
    byte((u32::from(number) * u32::from(share) + 127) / 255)
}

/// What fits into a byte, and else the most that does.
pub fn byte(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Palette(usize);

pub struct PaletteDefinition {
    pub name: &'static str,
    colours: &'static [Rgb],
}

const fn row(name: &'static str, colours: &'static [Rgb]) -> PaletteDefinition {
    PaletteDefinition { name, colours }
}

const fn rgb(red: u8, green: u8, blue: u8) -> Rgb {
    Rgb::new(red, green, blue)
}

pub const PALETTES: &[PaletteDefinition] = &[
    row(
        "rainbow",
        &[
            rgb(255, 0, 0),
            rgb(255, 140, 0),
            rgb(220, 220, 0),
            rgb(0, 220, 0),
            rgb(0, 160, 200),
            rgb(0, 0, 255),
            rgb(140, 0, 200),
        ],
    ),
    row("ember", &[rgb(20, 0, 0), rgb(160, 16, 0), rgb(255, 80, 0), rgb(255, 190, 60), rgb(190, 40, 0)]),
    row("ocean", &[rgb(0, 8, 40), rgb(0, 50, 120), rgb(0, 130, 160), rgb(120, 230, 220), rgb(0, 70, 150)]),
    row("forest", &[rgb(4, 30, 4), rgb(20, 90, 20), rgb(110, 150, 20), rgb(170, 190, 90), rgb(10, 60, 30)]),
    row("dusk", &[rgb(30, 10, 60), rgb(120, 20, 110), rgb(240, 70, 80), rgb(255, 160, 70), rgb(90, 30, 120)]),
    row("ice", &[rgb(10, 20, 60), rgb(60, 120, 220), rgb(180, 230, 255), rgb(255, 255, 255)]),
    row("candy", &[rgb(255, 40, 120), rgb(255, 200, 220), rgb(80, 220, 255), rgb(180, 120, 255)]),
    row("grey", &[rgb(0, 0, 0), rgb(255, 255, 255)]),
];

impl Palette {
    pub fn named(name: &str) -> Option<Self> {
        PALETTES.iter().position(|row| row.name == name).map(Self)
    }

    pub fn name(self) -> &'static str {
        PALETTES[self.0].name
    }

    /// Its colour at a place on the circle.
    pub fn colour(self, place: u8) -> Rgb {
        let colours = PALETTES[self.0].colours;
        let spread = usize::from(place) * colours.len();
        let (first, within) = (spread >> 8, u32::try_from(spread & 255).unwrap_or(0));
        colours[first].interpolate(colours[(first + 1) % colours.len()], byte(within))
    }
}

impl From<Palette> for String {
    fn from(palette: Palette) -> Self {
        palette.name().to_owned()
    }
}

impl TryFrom<String> for Palette {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::named(&name).ok_or("there is no palette of this name")
    }
}

/// The names of all, for people.
pub fn names() -> String {
    PALETTES.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hue_cycles_from_red_through_green_and_blue_to_red() {
        assert_eq!(Rgb::from_hue(0, 255), Rgb::new(255, 0, 0));
        assert_eq!(Rgb::from_hue(85, 255), Rgb::new(1, 255, 0));
        assert_eq!(Rgb::from_hue(170, 255), Rgb::new(0, 3, 255));
        assert_eq!(Rgb::from_hue(255, 255), Rgb::new(255, 0, 5));
        assert!((0..=255).all(|hue| Rgb::from_hue(hue, 0) == Rgb::WHITE));
    }

    #[test]
    fn full_and_zero_levels_are_exact() {
        let colour = Rgb::new(255, 128, 1);
        assert_eq!((colour.dimmed(255), colour.dimmed(0)), (colour, Rgb::BLACK));
        assert_eq!(
            (colour.interpolate(Rgb::WHITE, 0), colour.interpolate(Rgb::WHITE, 255)),
            (colour, Rgb::WHITE)
        );
        assert_eq!((colour.saturated(255), colour.saturated(0)), (colour, Rgb::WHITE));
        assert_eq!(colour.plus(Rgb::new(1, 1, 1)), Rgb::new(255, 129, 2));
    }

    #[test]
    fn palettes_wrap_around_smoothly() {
        for row in PALETTES {
            let palette = Palette::named(row.name).expect("it is in the table");
            assert_eq!((palette.name(), palette.colour(0)), (row.name, row.colours[0]));
            for place in 0..=255_u8 {
                let (here, next) = (palette.colour(place), palette.colour(place.wrapping_add(1)));
                let step = here.red.abs_diff(next.red).max(here.green.abs_diff(next.green));
                assert!(step.max(here.blue.abs_diff(next.blue)) <= 9, "{} at {place}", row.name);
            }
        }
        assert_eq!(Palette::named("no such"), None);
    }
}
