//! Exit codes.

/// The answer is no: damage was found, a passport is not genuine, nobody holds it, what was asked for makes no sense
/// here.
pub const NO: u8 = 1;
/// The command line itself is wrong.
pub const USAGE: u8 = 64;
/// The server cannot be reached, or cannot serve.
pub const UNAVAILABLE: u8 = 69;
pub const DISK: u8 = 74;
/// Somebody else has it, or the wait for it was over. Later it may be free.
pub const HELD: u8 = 75;
/// The lease was lost before its holder was done.
pub const LOST: u8 = 76;
/// The server does not let this caller do it.
pub const DENIED: u8 = 77;
pub const CONFIGURATION: u8 = 78;
/// `tenure run`: the command is there, and cannot be executed.
pub const CANNOT_EXECUTE: u8 = 126;
/// `tenure run`: there is no such command.
pub const NO_SUCH_COMMAND: u8 = 127;
