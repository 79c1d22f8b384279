//! The control face without sockets: who may move a device, and a device to move.
//!
//! ```text
//! table     every command of the device, who may send it, and under which address REST knows it
//! matrix    what a lease changes for each source: allow or block
//! hand      whose hand is on the device, and the pass that a command needs to reach it
//! refusal   how it is said that a command was not let through
//! problem   how it is said that a command makes no sense
//! millis    the device's clock of 32 bits, which wraps
//! gateway   what of that which is sent to somebody else's device would move it
//! ```
//!
//! No clock, disk, network or randomness: time comes in as a tick, and everything here can be replayed.

pub mod gateway;
pub mod hand;
pub mod matrix;
pub mod millis;
pub mod problem;
pub mod refusal;
pub mod table;

pub use hand::{Hand, Held, Owner, Pass, TokenDigest};
pub use matrix::{Class, Source, Standing, Verdict, judge};
pub use millis::{Millis, Uptime};
pub use problem::{Problem, ProblemCode};
pub use refusal::{Refusal, RefusalCode};
pub use table::{COMMANDS, CommandRow, Rest};
