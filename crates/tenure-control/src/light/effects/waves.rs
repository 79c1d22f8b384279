//! Effects made of waves.

use super::SECOND;
use crate::light::LEDS;
use crate::light::colour::{Rgb, byte, scale};
use crate::light::parameters::Parameters;
use crate::light::wave::{along, hills, scatter, swell, turn, turns};

/// Where on a wave of this length a position is.
fn phase(position: u32, length: u32) -> u8 {
    byte(position % length * 256 / length)
}

/// Light and dark, travelling. `intensity` is how short the waves are.
pub fn wave(look: &Parameters, time: u64, position: u32) -> Rgb {
    let length = 160 - u32::from(look.intensity) / 2;
    let crest = swell(phase(position, length).wrapping_sub(turn(time, 2 * SECOND)));
    look.colour(byte(position * 256 / LEDS)).dimmed(crest)
}

/// Three waves of different length, added, as places on the palette.
pub fn plasma(look: &Parameters, time: u64, position: u32) -> Rgb {
    let first = swell(phase(position, 97).wrapping_add(turn(time, 5 * SECOND)));
    let second = swell(phase(position, 61).wrapping_sub(turn(time, 7 * SECOND)));
    let third = swell(phase(position, 199).wrapping_add(turn(time, 11 * SECOND)));
    let sum = (u32::from(first) + u32::from(second) + u32::from(third)) / 3;
    look.colour(byte(sum)).dimmed(255 - scale(255 - second, look.intensity / 2))
}

/// Rings that grow from one place after the other. `intensity` is how wide they are.
pub fn ripple(look: &Parameters, time: u64, position: u32) -> Rgb {
    let period = 2 * SECOND;
    let ring = turns(time, period);
    let (middle, radius) = (scatter(11, ring) % LEDS, along(time, period, 120));
    let width = 4 + u32::from(look.intensity) / 16;
    let off = middle.abs_diff(position).abs_diff(radius);
    if off >= width {
        return Rgb::BLACK;
    }
    // A ring that grows gets weaker.
    let near = byte((width - off) * 255 / width);
    look.colour(byte(ring.wrapping_mul(59) & 255)).dimmed(scale(near, 255 - turn(time, period)))
}

/// Slow swells, one above the other, with white where they meet. `intensity` is how much of that.
pub fn ocean(look: &Parameters, time: u64, position: u32) -> Rgb {
    let drift = |period: u64| along(time, period * SECOND, 1 << 16);
    let deep = hills(21, position * 6 + drift(97));
    let high = hills(22, position * 11 + (1 << 16) - drift(61));
    let water = look.colour(byte((u32::from(deep) + u32::from(high)) / 2));
    let foam = scale(deep.saturating_sub(150), high.saturating_sub(150));
    water.plus(Rgb::WHITE.dimmed(scale(foam.saturating_mul(4), look.intensity)))
}
