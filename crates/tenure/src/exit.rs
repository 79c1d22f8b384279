//! What the exit code of every command means.

/// The answer is no: damage was found, a passport is not genuine, what was asked for makes no sense here.
pub const NO: u8 = 1;
/// The command line itself is wrong.
pub const USAGE: u8 = 64;
/// The server cannot be reached, or cannot serve.
pub const UNAVAILABLE: u8 = 69;
/// The disk failed.
pub const DISK: u8 = 74;
/// The configuration is wrong.
pub const CONFIGURATION: u8 = 78;
