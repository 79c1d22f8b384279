//! Who may control a device: pure rules, without sockets.
//!
//! ```text
//! commands           every command of the device, who may send it, and under which address REST knows it
//! permission_matrix  what a lease changes for each source: allow or block
//! ownership          who controls the device, and the permit that a command needs to reach it
//! rejection          how it is said that a command was not let through, or makes no sense
//! problem            how it is said that a command makes no sense
//! device_clock       the device's clock of 32 bits, which wraps
//! ```
//!
//! No clock, disk, network or randomness: time comes in as a tick, and everything here can be replayed.

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
