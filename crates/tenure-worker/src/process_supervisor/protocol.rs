//! Messages between the process that keeps a lease and the watchdog of its command: one line of JSON each, over a socket pair
//! that ends with the processes that hold it.

use serde::{Deserialize, Serialize};
use tenure_host::interprocess::CommandExit;

#[derive(Debug, Serialize, Deserialize)]
pub enum WatchdogCommand {
    Start {
        /// Until when the lease is surely ours, in microseconds of CLOCK_BOOTTIME.
        deadline: u64,
        /// How long the command has between SIGTERM and SIGKILL, in microseconds.
        grace: u64,
        /// How long before the deadline it is killed, in microseconds.
        reserve: u64,
        leaves: DescendantPolicy,
        /// What the command finds in its environment besides ours.
        environment: Vec<(String, String)>,
    },
    Deadline(u64),
    /// Send this signal to the command's group.
    Signal(i32),
    /// The lease is lost, or the command is not wanted any more: end it.
    End,
    Kill,
}

/// Which descendants may run on when a command has ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DescendantPolicy {
    KeepDaemons,
    /// No descendant: it could still use what the lease protects.
    EndAll,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchdogReport {
    /// The command runs, and leads the group with this number.
    Started(i32),
    NotStarted {
        /// What the system's error is called by its number.
        error: Option<i32>,
    },
    /// It was too late to start it.
    TooLate,
    /// The command was stopped by this signal.
    Stopped(i32),
    /// The deadline came near: the command was told to end.
    Ending,
    /// The command is gone, and so is everybody whom it may not leave behind.
    Ended(CommandExit),
}
