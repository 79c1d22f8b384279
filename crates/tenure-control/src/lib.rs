//! The control face without sockets: who may move a device, and a device to move.
//!
//! ```text
//! table         every command of the device, who may send it, and under which address REST knows it
//! matrix        what a lease changes for each source: allow or block
//! hand          whose hand is on the device, and the pass that a command needs to reach it
//! refusal       how it is said that a command was not let through
//! problem       how it is said that a command makes no sense
//! device_clock  the device's clock of 32 bits, which wraps
//! device        the virtual light: every command of the table, carried out
//! light         what it shows: effects, parameters, presets, transport, settings
//! stream        frames that an owner sends; `render_frame` is one of them, byte for byte
//! firmware      images, checked while they come in
//! stored        what of it outlives a restart
//! serial        lines that people type at a serial port, to commands
//! encoder       records of an input device, to commands
//! gateway       what of that which is sent to somebody else's device would move it
//! ```
//!
//! No clock, disk, network or randomness: time comes in as a tick, and everything here can be replayed.

pub mod commands;
pub mod device;
pub mod device_clock;
mod device_command_fields;
pub mod firmware;
pub mod gateway;
mod hex_base64;
pub mod light;
pub mod ownership;
pub mod permission_matrix;
pub mod persistent_state;
pub mod problem;
mod rate_meter;
pub mod rejection;
pub mod render_frame;
pub mod rotary_encoder;
pub mod serial;
pub mod stream;

pub use commands::{COMMANDS, CommandDefinition, RestRoute};
pub use device::{CommandReply, VirtualDevice};
pub use device_clock::{DeviceClock, DeviceInstant};
pub use firmware::{FirmwareImageError, FirmwareInfo, ImageChecker};
pub use ownership::{ControlLease, ControlOwner, OwnershipState, Permit, TokenDigest};
pub use permission_matrix::{CommandClass, CommandSource, OwnershipStatus, PermissionVerdict, evaluate};
pub use persistent_state::{PersistentState, PersistentStateError};
pub use problem::{Problem, ProblemCode};
pub use rejection::{ControlRejection, ControlRejectionCode};
pub use render_frame::RenderFrame;
pub use stream::StopReason;
