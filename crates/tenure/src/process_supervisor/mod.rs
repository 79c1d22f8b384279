//! A command that runs under a lease: a watchdog is its parent and ends it in time, whatever becomes of who keeps the
//! lease. `tenure run` has one such command, the worker one for each session.

mod protocol;
mod reparented;
mod signals;
mod supervised_process;
pub mod timer;
mod watchdog;

pub use self::protocol::{CommandExit, DescendantPolicy, MessageStream, WatchdogReport};
pub use self::signals::{STEERING, Signals, without_ignored};
pub use self::supervised_process::{StandardStreams, SupervisedProcess};
pub use self::watchdog::{SUBCOMMAND, TerminationMargins, run};
