//! The effects: functions of the parameters, the time in microseconds (at the set speed) and the position on the strip.
//! They have no state: the same moment gives the same colour.

use crate::light::LEDS;
use crate::light::colour::{Rgb, byte, scale};
use crate::light::parameters::Parameters;

/// A second, in the time of effects.
const SECOND: u64 = 1_000_000;

pub fn solid(look: &Parameters, _: u64, _: u32) -> Rgb {
    look.solid_colour()
}

/// The palette, once along the strip.
pub fn gradient(look: &Parameters, _: u64, position: u32) -> Rgb {
    look.palette_colour(byte(position * 256 / LEDS))
}

/// One colour that breathes. `intensity` is how deep.
pub fn breathe(look: &Parameters, time: u64, _: u32) -> Rgb {
    let breath = smooth_wave(cycle_phase(time, 4 * SECOND));
    look.solid_colour().dimmed(255 - scale(255 - breath, look.intensity))
}

/// Short flashes. Never more than two a second, whatever the speed: from three on they can harm people. `intensity` is how
/// long each lasts.
pub fn strobe(look: &Parameters, time: u64, _: u32) -> Rgb {
    // At the highest speed, time runs twice as fast.
    let is_lit = cycle_phase(time, SECOND) < 8 + look.intensity / 2;
    if is_lit { look.solid_colour() } else { Rgb::BLACK }
}

/// Where on a wave of this length a position is.
fn phase(position: u32, length: u32) -> u8 {
    byte(position % length * 256 / length)
}

/// Light and dark, travelling. `intensity` is how short the waves are.
pub fn wave(look: &Parameters, time: u64, position: u32) -> Rgb {
    let length = 160 - u32::from(look.intensity) / 2;
    let crest = smooth_wave(phase(position, length).wrapping_sub(cycle_phase(time, 2 * SECOND)));
    look.palette_colour(byte(position * 256 / LEDS)).dimmed(crest)
}

/// Three waves of different length, added, as places on the palette.
pub fn plasma(look: &Parameters, time: u64, position: u32) -> Rgb {
    let first = smooth_wave(phase(position, 97).wrapping_add(cycle_phase(time, 5 * SECOND)));
    let second = smooth_wave(phase(position, 61).wrapping_sub(cycle_phase(time, 7 * SECOND)));
    let third = smooth_wave(phase(position, 199).wrapping_add(cycle_phase(time, 11 * SECOND)));
    let sum = (u32::from(first) + u32::from(second) + u32::from(third)) / 3;
    look.palette_colour(byte(sum)).dimmed(255 - scale(255 - second, look.intensity / 2))
}

/// Rings that grow from one place after the other. `intensity` is how wide they are.
pub fn ripple(look: &Parameters, time: u64, position: u32) -> Rgb {
    let period = 2 * SECOND;
    let ring = cycle_count(time, period);
    let (middle, radius) = (pseudo_random(11, ring) % LEDS, cycle_position(time, period, 120));
    let width = 4 + u32::from(look.intensity) / 16;
    let off = middle.abs_diff(position).abs_diff(radius);
    if off >= width {
        return Rgb::BLACK;
    }
    // A ring that grows gets weaker.
    let near = byte((width - off) * 255 / width);
    look.palette_colour(byte(ring.wrapping_mul(59) & 255))
        .dimmed(scale(near, 255 - cycle_phase(time, period)))
}

/// Slow swells, one above the other, with white where they meet. `intensity` is how much of that.
pub fn ocean(look: &Parameters, time: u64, position: u32) -> Rgb {
    let drift = |period: u64| cycle_position(time, period * SECOND, 1 << 16);
    let deep = smooth_noise(21, position * 6 + drift(97));
    let high = smooth_noise(22, position * 11 + (1 << 16) - drift(61));
    let water = look.palette_colour(byte((u32::from(deep) + u32::from(high)) / 2));
    let foam = scale(deep.saturating_sub(150), high.saturating_sub(150));
    water.plus(Rgb::WHITE.dimmed(scale(foam.saturating_mul(4), look.intensity)))
}

/// The palette, running. `intensity` is how often it stands on the strip.
pub fn rainbow(look: &Parameters, time: u64, position: u32) -> Rgb {
    let repeats = 1 + u32::from(look.intensity) / 32;
    let place = byte((position * repeats * 256 / LEDS) & 255);
    look.palette_colour(place.wrapping_sub(cycle_phase(time, 5 * SECOND)))
}

/// Every few lights one is lit, and they move on. `intensity` is how far apart.
pub fn chase(look: &Parameters, time: u64, position: u32) -> Rgb {
    let gap = 3 + u32::from(look.intensity) / 32;
    let step = cycle_count(time, SECOND / 8) % gap;
    if (position + gap - step).is_multiple_of(gap) {
        look.palette_colour(byte(position * 256 / LEDS))
    } else {
        Rgb::BLACK
    }
}

/// A head with a tail that fades. `intensity` is how long the tail is.
pub fn comet(look: &Parameters, time: u64, position: u32) -> Rgb {
    let head = cycle_position(time, 3 * SECOND, LEDS);
    let behind = (head + LEDS - position) % LEDS;
    tail(look, behind, 8 + u32::from(look.intensity) / 2)
}

/// A light that goes there and back. `intensity` is how wide it is.
pub fn scanner(look: &Parameters, time: u64, position: u32) -> Rgb {
    let way = cycle_position(time, 4 * SECOND, 2 * (LEDS - 1));
    let middle = if way < LEDS { way } else { 2 * (LEDS - 1) - way };
    tail(look, middle.abs_diff(position), 4 + u32::from(look.intensity) / 8)
}

/// A colour covers the strip, then the next one covers that.
pub fn wipe(look: &Parameters, time: u64, position: u32) -> Rgb {
    let round = cycle_count(time, 3 * SECOND);
    let is_covered = position <= cycle_position(time, 3 * SECOND, LEDS);
    // Colours that follow each other lie far apart on the palette.
    let place = |round: u32| byte(round.wrapping_mul(83) & 255);
    look.palette_colour(place(if is_covered { round.wrapping_add(1) } else { round }))
}

/// What is lit this far from the brightest light.
fn tail(look: &Parameters, distance: u32, length: u32) -> Rgb {
    if distance >= length {
        return Rgb::BLACK;
    }
    let remaining = (length - distance) * 255 / length;
    look.palette_colour(byte(distance * 128 / length)).dimmed(byte(remaining * remaining / 255))
}

/// Flames that rise from the beginning of the strip. `intensity` is how high.
pub fn fire(look: &Parameters, time: u64, position: u32) -> Rgb {
    let rise = cycle_position(time, 64 * SECOND, 1 << 16).wrapping_mul(8);
    // The second layer flickers faster, so that no flame is seen twice.
    let flame = smooth_noise(31, (position * 24).wrapping_sub(rise)) / 2
        + smooth_noise(32, (position * 41).wrapping_sub(rise.wrapping_mul(2))) / 2;
    let height = 40 + u32::from(look.intensity) * (LEDS - 40) / 255;
    let cooling = byte(position * 255 / height);
    let heat = flame.saturating_add(96).saturating_sub(cooling);
    look.palette_colour(heat / 2).dimmed(heat)
}

/// Stars that come and go. `intensity` is how many.
pub fn twinkle(look: &Parameters, time: u64, position: u32) -> Rgb {
    // Each star has its own rhythm.
    let period = 2 * SECOND + u64::from(pseudo_random(41, position) % 3_000_000);
    let round = cycle_count(time, period);
    if pseudo_random_byte(position, round) > look.intensity / 2 + 16 {
        return Rgb::BLACK;
    }
    look.palette_colour(pseudo_random_byte(42, position.wrapping_add(round)))
        .dimmed(smooth_wave(cycle_phase(time, period)))
}

/// Flashes on a dark ground that are gone at once. `intensity` is how many.
pub fn sparkle(look: &Parameters, time: u64, position: u32) -> Rgb {
    let period = SECOND / 10;
    let round = cycle_count(time, period);
    let background = look.solid_colour().dimmed(24);
    if pseudo_random(position, round.wrapping_add(43)) % 1_024 > u32::from(look.intensity) / 4 {
        return background;
    }
    background.interpolate(Rgb::WHITE, 255 - cycle_phase(time, period))
}

/// Drops that fall along the strip. `intensity` is how many.
pub fn rain(look: &Parameters, time: u64, position: u32) -> Rgb {
    const LANE: u32 = 16;
    // One drop to a lane, each with a start of its own; a lane is a piece of the strip that a drop falls through.
    let lane = position / LANE;
    let start = u64::from(pseudo_random(44, lane) % 1_500_000);
    let (time, period) = (time.saturating_add(start), 3 * SECOND / 2);
    let round = cycle_count(time, period);
    if pseudo_random_byte(lane.wrapping_add(45), round) > look.intensity {
        return Rgb::BLACK;
    }
    let drop = cycle_position(time, period, LANE + 8);
    let behind = drop.wrapping_sub(position % LANE);
    if behind >= 8 {
        return Rgb::BLACK;
    }
    let tail = byte((8 - behind) * 32);
    look.palette_colour(pseudo_random_byte(46, round)).dimmed(scale(tail, tail))
}

/// How far a turn of this length is at `time`, as a byte: 0 at its beginning, 128 in the middle.
pub fn cycle_phase(time: u64, period: u64) -> u8 {
    let within = u128::from(time % period) * 256 / u128::from(period);
    u8::try_from(within).unwrap_or(u8::MAX)
}

/// How many whole turns of this length there were, in 32 bits.
pub fn cycle_count(time: u64, period: u64) -> u32 {
    u32::try_from(time / period % (1 << 32)).unwrap_or(u32::MAX)
}

/// How far a turn is, as a place on a strip of `length`.
pub fn cycle_position(time: u64, period: u64, length: u32) -> u32 {
    let within = u128::from(time % period) * u128::from(length) / u128::from(period);
    u32::try_from(within).unwrap_or(u32::MAX)
}

/// Up and down in straight lines: 0 at 0, 255 at 128.
pub fn triangle(phase: u8) -> u8 {
    let up = if phase < 128 { phase } else { 255 - phase };
    byte(u32::from(up) * 255 / 127)
}

/// Up and down without corners: slow at both ends, as a breath is.
pub fn smooth_wave(phase: u8) -> u8 {
    let at = u32::from(triangle(phase));
    byte(at * at * (765 - 2 * at) / 65_025)
}

/// A number that belongs to these two, and looks as if it did not.
pub fn pseudo_random(seed: u32, number: u32) -> u32 {
    let mut mixed = seed.wrapping_mul(0x9E37_79B1) ^ number.wrapping_mul(0x85EB_CA77);
    mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x2C1B_3C6D);
    mixed = (mixed ^ (mixed >> 12)).wrapping_mul(0x297A_2D39);
    mixed ^ (mixed >> 15)
}

pub fn pseudo_random_byte(seed: u32, number: u32) -> u8 {
    byte(pseudo_random(seed, number) >> 24)
}

/// Hills and valleys: `place` counts in 256ths from one point to the next. After 256 points they begin again, so that what
/// goes round in 65536 steps has no seam.
pub fn smooth_noise(seed: u32, place: u32) -> u8 {
    let (point, within) = (place >> 8, u32::from(smooth_wave(byte((place & 255) / 2))));
    let [here, next] = [point, point + 1].map(|point| u32::from(pseudo_random_byte(seed, point & 255)));
    byte((here * (255 - within) + next * within) / 255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_repeat_after_their_period() {
        assert_eq!([0, 500, 999, 1_000, 1_500].map(|time| cycle_phase(time, 1_000)), [0, 128, 255, 0, 128]);
        assert_eq!([0, 999, 1_000].map(|time| cycle_count(time, 1_000)), [0, 0, 1]);
        assert_eq!([0, 500, 999].map(|time| cycle_position(time, 1_000, 320)), [0, 160, 319]);
        assert_eq!(cycle_phase(u64::MAX, u64::MAX), 0);
    }

    #[test]
    fn smooth_waves_reach_both_ends_without_jumps() {
        for wave in [triangle, smooth_wave] {
            assert_eq!([0, 127, 128, 255].map(wave), [0, 255, 255, 0]);
            assert!((0..255).all(|phase| wave(phase).abs_diff(wave(phase + 1)) <= 4));
        }
    }

    #[test]
    fn pseudo_random_values_are_spread_and_deterministic() {
        let mut seen = [0_u32; 16];
        (0..4_096).for_each(|number| seen[usize::from(pseudo_random_byte(7, number) >> 4)] += 1);
        assert!(seen.iter().all(|&count| (180..=340).contains(&count)), "{seen:?}");
        assert_eq!(pseudo_random(1, 2), pseudo_random(1, 2));
    }

    #[test]
    fn smooth_noise_has_no_jumps() {
        for place in 0..140_000 {
            let [here, next] = [place, place + 1].map(|place| smooth_noise(3, place));
            assert!(here.abs_diff(next) <= 8, "at {place}: {here} {next}");
        }
    }
}
