//! Effects that run along the strip.

use super::SECOND;
use crate::light::LEDS;
use crate::light::colour::{Rgb, byte};
use crate::light::parameters::Parameters;
use crate::light::wave::{along, turn, turns};

/// The palette, running. `intensity` is how often it stands on the strip.
pub fn rainbow(look: &Parameters, time: u64, position: u32) -> Rgb {
    let repeats = 1 + u32::from(look.intensity) / 32;
    let place = byte((position * repeats * 256 / LEDS) & 255);
    look.colour(place.wrapping_sub(turn(time, 5 * SECOND)))
}

/// Every few lights one is lit, and they move on. `intensity` is how far apart.
pub fn chase(look: &Parameters, time: u64, position: u32) -> Rgb {
    let gap = 3 + u32::from(look.intensity) / 32;
    let step = turns(time, SECOND / 8) % gap;
    if (position + gap - step).is_multiple_of(gap) {
        look.colour(byte(position * 256 / LEDS))
    } else {
        Rgb::BLACK
    }
}

/// A head with a tail that fades. `intensity` is how long the tail is.
pub fn comet(look: &Parameters, time: u64, position: u32) -> Rgb {
    let head = along(time, 3 * SECOND, LEDS);
    let behind = (head + LEDS - position) % LEDS;
    tail(look, behind, 8 + u32::from(look.intensity) / 2)
}

/// A light that goes there and back. `intensity` is how wide it is.
pub fn scanner(look: &Parameters, time: u64, position: u32) -> Rgb {
    let way = along(time, 4 * SECOND, 2 * (LEDS - 1));
    let middle = if way < LEDS { way } else { 2 * (LEDS - 1) - way };
    tail(look, middle.abs_diff(position), 4 + u32::from(look.intensity) / 8)
}

/// A colour covers the strip, then the next one covers that.
pub fn wipe(look: &Parameters, time: u64, position: u32) -> Rgb {
    let round = turns(time, 3 * SECOND);
    let is_covered = position <= along(time, 3 * SECOND, LEDS);
    // Colours that follow each other lie far apart on the palette.
    let place = |round: u32| byte(round.wrapping_mul(83) & 255);
    look.colour(place(if is_covered { round.wrapping_add(1) } else { round }))
}

/// What is lit this far from the brightest light.
fn tail(look: &Parameters, distance: u32, length: u32) -> Rgb {
    if distance >= length {
        return Rgb::BLACK;
    }
    let left = (length - distance) * 255 / length;
    look.colour(byte(distance * 128 / length)).dimmed(byte(left * left / 255))
}
