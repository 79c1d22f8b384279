//! What the exit code of every command means.

/// The command line itself is wrong.
pub const USAGE: u8 = 64;
/// The server cannot be reached, or cannot serve.
pub const UNAVAILABLE: u8 = 69;
