//! Effects that do not travel.

use super::SECOND;
use crate::light::LEDS;
use crate::light::colour::{Rgb, byte, scale};
use crate::light::parameters::Parameters;
use crate::light::wave::{swell, turn};

pub fn solid(look: &Parameters, _: u64, _: u32) -> Rgb {
    look.plain()
}

/// The palette, once along the strip.
pub fn gradient(look: &Parameters, _: u64, position: u32) -> Rgb {
    look.colour(byte(position * 256 / LEDS))
}

/// One colour that breathes. `intensity` is how deep.
pub fn breathe(look: &Parameters, time: u64, _: u32) -> Rgb {
    let breath = swell(turn(time, 4 * SECOND));
    look.plain().dimmed(255 - scale(255 - breath, look.intensity))
}

/// Short flashes. Never more than two a second, whatever the speed: from three on they can harm people. `intensity` is how
/// long each lasts.
pub fn strobe(look: &Parameters, time: u64, _: u32) -> Rgb {
    // At the highest speed, time runs twice as fast.
    let is_lit = turn(time, SECOND) < 8 + look.intensity / 2;
    if is_lit { look.plain() } else { Rgb::BLACK }
}
