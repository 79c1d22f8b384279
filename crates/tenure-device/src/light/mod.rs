//! The light itself: what 320 LEDs show, as a function of time.
//!
//! ```text
//! colour      colours, palettes and their arithmetic
//! effects     each effect: (parameters, time, position) -> colour
//! effect      the table of effects
//! parameters  brightness, speed and the others, with their ranges
//! playback    playing, paused or stopped, and the position
//! preset      effect and parameters under a name
//! settings    settings that outlive a restart
//! ```
//!
//! Nothing runs in the background. A frame is computed when it is read, from integers alone, so the same moment looks the
//! same on every machine.

pub mod colour;
pub mod effect;
mod effects;
pub mod parameters;
pub mod playback;
pub mod preset;
pub mod settings;

use colour::scale;
pub use colour::{PALETTES, Palette, Rgb};
pub use effect::{EFFECTS, Effect};
pub use parameters::{PARAMETERS, Parameters};
pub use playback::{Playback, PlaybackState};
pub use preset::{Preset, Presets};
pub use settings::Settings;

pub const LEDS: u32 = 320;
/// How many bytes their colours take: red, green and blue of each.
pub const COLOUR_BYTES: usize = 3 * LEDS as usize;

/// What all lights show: red, green and blue of each.
pub type Pixels = [u8; COLOUR_BYTES];

pub const DARK: Pixels = [0; COLOUR_BYTES];

/// What an effect shows at `time`, with at most `limit` of brightness.
pub fn render_effect(effect: Effect, look: &Parameters, time: u64, limit: u8) -> Pixels {
    let brightness = look.brightness.min(limit);
    let mut pixels = DARK;
    for (position, pixel) in (0..LEDS).zip(pixels.as_chunks_mut::<3>().0) {
        let Rgb { red, green, blue } = effect.colour(look, time, place(look, position)).dimmed(brightness);
        *pixel = [red, green, blue];
    }
    pixels
}

/// What a streamed frame shows. Who sends it has chosen its brightness; the limit holds all the same.
pub fn render_streamed_frame(colours: &Pixels, limit: u8) -> Pixels {
    match limit {
        u8::MAX => *colours,
        _ => colours.map(|colour| scale(colour, limit)),
    }
}

/// Where on the effect's strip a light is.
fn place(look: &Parameters, position: u32) -> u32 {
    let half = LEDS / 2;
    let place = match look.mirror {
        false => position,
        true if position < half => 2 * (half - 1 - position),
        true => 2 * (position - half),
    };
    if look.reverse { LEDS - 1 - place } else { place }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::light::effect::EFFECTS;

    const SECOND: u64 = 1_000_000;

    type Change = fn(&mut Parameters);

    fn all() -> impl Iterator<Item = Effect> {
        (0..).map_while(Effect::numbered)
    }

    fn bright() -> Parameters {
        Parameters { brightness: 255, ..Parameters::default() }
    }

    #[test]
    fn every_effect_lights_up_and_effects_with_a_speed_move() {
        assert!(EFFECTS.len() >= 10);
        for shown in all() {
            let at = |time| render_effect(shown, &bright(), time, 255);
            let frames = (0..40).map(|step| at(step * SECOND / 4)).collect::<Vec<_>>();
            assert!(frames.iter().any(|frame| *frame != DARK), "{}", shown.name());
            let moves = frames.iter().any(|frame| *frame != frames[0]);
            assert_eq!(moves, shown.definition().uses.contains(&"speed"), "{}", shown.name());
        }
    }

    #[test]
    fn only_listed_parameters_change_an_effect() {
        let changes: [(&str, Change); 4] = [
            ("palette", |look| look.palette = crate::light::Palette::named("ice").expect("it is there")),
            ("hue", |look| look.hue = 90),
            ("saturation", |look| look.saturation = 20),
            ("intensity", |look| look.intensity = 255),
        ];
        for shown in all() {
            for (name, change) in changes {
                let mut look = bright();
                change(&mut look);
                let differs = (0..400).map(|step| step * SECOND / 9).any(|time| {
                    render_effect(shown, &look, time, 255) != render_effect(shown, &bright(), time, 255)
                });
                assert_eq!(differs, shown.definition().uses.contains(&name), "{} {name}", shown.name());
            }
        }
    }

    #[test]
    fn different_effects_render_different_frames() {
        let look = bright();
        for one in all() {
            for other in all().filter(|other| other.number() > one.number()) {
                let same = (0..20).map(|step| step * SECOND / 3).filter(|&time| {
                    render_effect(one, &look, time, 255) == render_effect(other, &look, time, 255)
                });
                assert!(same.count() < 20, "{} {}", one.name(), other.name());
            }
        }
    }

    #[test]
    fn rendering_never_panics_for_extreme_times_and_parameters() {
        for shown in all() {
            for time in [0, 1, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
                for level in [0, 1, 127, 255] {
                    let look = Parameters {
                        hue: level,
                        saturation: level,
                        intensity: level,
                        mirror: level == 127,
                        reverse: level > 1,
                        ..bright()
                    };
                    let _ = render_effect(shown, &look, time, 255);
                }
            }
        }
    }

    #[test]
    fn brightness_is_applied_and_capped_by_the_limit() {
        let solid = Effect::named("solid").expect("it is there");
        let first = |look: &Parameters, limit| render_effect(solid, look, 0, limit)[0];
        assert_eq!(first(&bright(), 255), 255);
        assert_eq!(first(&bright(), 100), 100);
        assert_eq!(first(&Parameters { brightness: 40, ..bright() }, 100), 40);
        assert_eq!(render_effect(solid, &Parameters { brightness: 0, ..bright() }, 0, 255), DARK);
        assert_eq!(render_streamed_frame(&[200; COLOUR_BYTES], 255)[0], 200);
        assert_eq!(render_streamed_frame(&[255; COLOUR_BYTES], 100)[7], 100);
    }

    #[test]
    fn mirror_repeats_both_halves_and_reverse_flips_the_strip() {
        let gradient = Effect::named("gradient").expect("it is there");
        let show = |look: &Parameters| render_effect(gradient, look, 0, 255).as_chunks::<3>().0.to_vec();
        let mirrored = show(&Parameters { mirror: true, ..bright() });
        assert!((0..160).all(|place| mirrored[place] == mirrored[319 - place]));
        let mut reversed = show(&Parameters { reverse: true, ..bright() });
        reversed.reverse();
        assert_eq!(reversed, show(&bright()));
    }

    #[test]
    fn a_strobe_never_flashes_more_than_twice_a_second() {
        let strobe = Effect::named("strobe").expect("it is there");
        let is_lit = |milli: u64| render_effect(strobe, &bright(), milli * 1_000, 255) != DARK;
        // At the highest speed a second has two of the effect's own.
        let flashes = (1..2_000).filter(|&milli| is_lit(milli) && !is_lit(milli - 1)).count();
        assert!(flashes <= 2, "{flashes}");
    }
}
