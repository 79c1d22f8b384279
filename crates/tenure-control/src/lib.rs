//! The control face without sockets: who may move a device, and a device to move.
//!
//! ```text
//! table     every command of the device, who may send it, and under which address REST knows it
//! matrix    what a lease changes for each source: allow or block
//! hand      whose hand is on the device, and the pass that a command needs to reach it
//! refusal   how it is said that a command was not let through
//! problem   how it is said that a command makes no sense
//! millis    the device's clock of 32 bits, which wraps
//! device    the virtual light: every command of the table, carried out
//! light     what it shows: effects, parameters, presets, transport, settings
//! stream    frames that an owner sends; `frame` is one of them, byte for byte
//! firmware  images, checked while they come in
//! stored    what of it outlives a restart
//! serial    lines that people type at a serial port, to commands
//! encoder   records of an input device, to commands
//! gateway   what of that which is sent to somebody else's device would move it
//! ```
//!
//! No clock, disk, network or randomness: time comes in as a tick, and everything here can be replayed.

pub mod device;
pub mod encoder;
mod fields;
pub mod firmware;
pub mod frame;
pub mod gateway;
pub mod hand;
pub mod light;
pub mod matrix;
pub mod millis;
pub mod problem;
mod rate;
pub mod refusal;
pub mod serial;
pub mod stored;
pub mod stream;
pub mod table;
mod text;

pub use device::{Done, VirtualDevice};
pub use firmware::{Check, Flaw, Image};
pub use frame::Frame;
pub use hand::{Hand, Held, Owner, Pass, TokenDigest};
pub use matrix::{Class, Source, Standing, Verdict, judge};
pub use millis::{Millis, Uptime};
pub use problem::{Problem, ProblemCode};
pub use refusal::{Refusal, RefusalCode};
pub use stored::{Stored, StoredError};
pub use stream::StopReason;
pub use table::{COMMANDS, CommandRow, Rest};
