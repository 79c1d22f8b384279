//! Effects that look like chance. What is scattered depends on the moment and the position alone.

use super::SECOND;
use crate::light::LEDS;
use crate::light::colour::{Rgb, byte, scale};
use crate::light::parameters::Parameters;
use crate::light::wave::{along, hills, scatter, scatter_byte, swell, turn, turns};

/// Flames that rise from the beginning of the strip. `intensity` is how high.
pub fn fire(look: &Parameters, time: u64, position: u32) -> Rgb {
    let rise = along(time, 64 * SECOND, 1 << 16).wrapping_mul(8);
    // The second layer flickers faster, so that no flame is seen twice.
    let flame = hills(31, (position * 24).wrapping_sub(rise)) / 2
        + hills(32, (position * 41).wrapping_sub(rise.wrapping_mul(2))) / 2;
    let height = 40 + u32::from(look.intensity) * (LEDS - 40) / 255;
    let cooling = byte(position * 255 / height);
    let heat = flame.saturating_add(96).saturating_sub(cooling);
    look.colour(heat / 2).dimmed(heat)
}

/// Stars that come and go. `intensity` is how many.
pub fn twinkle(look: &Parameters, time: u64, position: u32) -> Rgb {
    // Each star has its own rhythm.
    let period = 2 * SECOND + u64::from(scatter(41, position) % 3_000_000);
    let round = turns(time, period);
    if scatter_byte(position, round) > look.intensity / 2 + 16 {
        return Rgb::BLACK;
    }
    look.colour(scatter_byte(42, position.wrapping_add(round))).dimmed(swell(turn(time, period)))
}

/// Flashes on a dark ground that are gone at once. `intensity` is how many.
pub fn sparkle(look: &Parameters, time: u64, position: u32) -> Rgb {
    let period = SECOND / 10;
    let round = turns(time, period);
    let ground = look.plain().dimmed(24);
    if scatter(position, round.wrapping_add(43)) % 1_024 > u32::from(look.intensity) / 4 {
        return ground;
    }
    ground.towards(Rgb::WHITE, 255 - turn(time, period))
}

/// Drops that fall along the strip. `intensity` is how many.
pub fn rain(look: &Parameters, time: u64, position: u32) -> Rgb {
    const LANE: u32 = 16;
    // One drop to a lane, each with a start of its own; a lane is a piece of the strip that a drop falls through.
    let lane = position / LANE;
    let start = u64::from(scatter(44, lane) % 1_500_000);
    let (time, period) = (time.saturating_add(start), 3 * SECOND / 2);
    let round = turns(time, period);
    if scatter_byte(lane.wrapping_add(45), round) > look.intensity {
        return Rgb::BLACK;
    }
    let drop = along(time, period, LANE + 8);
    let behind = drop.wrapping_sub(position % LANE);
    if behind >= 8 {
        return Rgb::BLACK;
    }
    let tail = byte((8 - behind) * 32);
    look.colour(scatter_byte(46, round)).dimmed(scale(tail, tail))
}
