//! Rules of device control: which commands the control lease allows, and for which connection.
//!
//! ```text
//! commands           table of the device's commands, with their classes and REST routes
//! permission_matrix  allow or block, for each source and class of command
//! ownership          the current owner, and the permit that a command needs to reach the device
//! rejection          error for a command that the lease blocks
//! problem            error for a command that is invalid, or that the device cannot execute
//! device_clock       the device's clock of 32 bits, which wraps
//! ```
//!
//! No clock, disk, network or randomness: time is an argument, and everything here can be replayed.

pub mod commands;
pub mod device_clock;
pub mod ownership;
pub mod permission_matrix;
pub mod problem;
pub mod rejection;

pub use commands::{COMMANDS, CommandDefinition, RestRoute};
pub use device_clock::{DeviceClock, DeviceInstant};
pub use ownership::{ControlLease, ControlOwner, OwnershipState, Permit, TokenDigest};
pub use permission_matrix::{CommandClass, CommandSource, OwnershipStatus, PermissionVerdict, evaluate};
pub use problem::{Problem, ProblemCode};
pub use rejection::{CommandError, ControlRejection, ControlRejectionCode};
