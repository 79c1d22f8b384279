//! Messages between launcher and supervisor: one line of JSON each, over a socket pair that ends with either process.

use serde::{Deserialize, Serialize};
use tenure_host::interprocess::CommandExit;

#[derive(Debug, Serialize, Deserialize)]
pub enum SupervisorCommand {
    /// Send this signal to the command.
    Signal(i32),
}

#[derive(Debug, Serialize, Deserialize)]
pub enum SupervisorReport {
    /// It cannot be watched, so it was not run.
    NotWatched { why: String, remedy: String },
    Stopped {
        signal: i32,
        /// When that was seen, in microseconds of CLOCK_BOOTTIME: who was let go on since then need not stop.
        at: u64,
    },
    /// The command is gone. What it left in the background is still watched.
    Ended {
        how: CommandExit,
        /// Whether nothing is left to watch, so that the keeper ends too.
        is_last: bool,
    },
}
