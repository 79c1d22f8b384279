//! The effects. Each is a function of the parameters, the time in microseconds (at the speed that is set) and the
//! position on the strip. It remembers nothing: whoever asks for a moment twice gets the same colour twice.

mod running;
mod sparks;
mod steady;
mod waves;

pub use running::{chase, comet, rainbow, scanner, wipe};
pub use sparks::{fire, rain, sparkle, twinkle};
pub use steady::{breathe, gradient, solid, strobe};
pub use waves::{ocean, plasma, ripple, wave};

/// A second, in the time of effects.
const SECOND: u64 = 1_000_000;
