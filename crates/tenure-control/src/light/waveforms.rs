//! What moves: turns, swells, and what looks like chance but is the same each time.

use super::colour::byte;

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
