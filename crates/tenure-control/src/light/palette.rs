//! Palettes: circles of colours.

use serde::{Deserialize, Serialize};

use super::colour::{Rgb, byte};

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
