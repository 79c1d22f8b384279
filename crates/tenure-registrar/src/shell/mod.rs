//! The shell around the step function: one thread, one clock, one ledger. It decides nothing.

mod clock;
mod inbox;
mod replay;
mod writer;

pub use clock::{BootClock, Clock};
pub use replay::{ReplayError, replay};
pub use writer::{Handle, Publish, StartError, Writer};
