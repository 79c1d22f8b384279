//! A command that runs under a lease: a watchdog is its parent and ends it in time, whatever becomes of who keeps the
//! lease. `tenure run` has one such command, the worker one for each session.

pub mod clock;
mod guarded;
mod link;
mod signals;
mod strays;
mod watchdog;

pub use self::guarded::{Guarded, Standard};
pub use self::link::{Ended, Leaves, Link, Report};
pub use self::signals::{STEERING, Signals, not_ignored};
pub use self::watchdog::{Margins, NAME, run};
