//! What the exit code of every command means.

/// The command line itself is wrong.
pub const USAGE: u8 = 64;
/// The server cannot be reached, or cannot serve.
pub const UNAVAILABLE: u8 = 69;
/// The disk failed while serving.
pub const DISK: u8 = 74;
/// The configuration is wrong.
pub const CONFIGURATION: u8 = 78;
