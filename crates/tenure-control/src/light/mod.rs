//! The light itself: what 320 lights show, as a function of time.
//!
//! ```text
//! colour, palette, waveforms  what effects are painted with
//! effects/                    each effect: (parameters, time, position) -> colour
//! effect                      the table of them
//! parameters                  brightness, speed and the others, with their ranges
//! transport                   plays, stands still, or is dark
//! render                      a whole frame
//! preset, settings            what is kept
//! ```
//!
//! Nothing runs here. A frame is computed when somebody looks, from whole numbers alone, so the same moment looks the
//! same on every machine.

pub mod colour;
pub mod effect;
mod effects;
pub mod palette;
pub mod parameters;
pub mod playback;
pub mod preset;
pub mod render;
pub mod settings;
mod waveforms;

pub use colour::Rgb;
pub use effect::{EFFECTS, Effect};
pub use palette::{PALETTES, Palette};
pub use parameters::{PARAMETERS, Parameters};
pub use playback::{Playback, PlaybackState};
pub use preset::{Preset, Presets};
pub use render::Pixels;
pub use settings::Settings;

pub const LEDS: u32 = 320;
/// How many bytes their colours take: red, green and blue of each.
pub const COLOUR_BYTES: usize = 3 * LEDS as usize;
