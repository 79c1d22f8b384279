//! The virtual light: a device that needs no hardware, and its inputs.
//!
//! ```text
//! device                 executes every command of the table
//! device_command_fields  the fields of a command, read strictly
//! light                  what it displays: effects, parameters, presets, playback, settings
//! stream, rate_meter     frames from the owner, and their rate
//! render_frame           one such frame, byte for byte
//! firmware               images, checked while they arrive
//! persistent_state       what outlives a restart
//! serial                 lines typed at a serial port, to commands
//! rotary_encoder         records of an input device, to commands
//! ```
//!
//! No clock, disk, network or randomness: time is an argument, and everything here can be replayed.

pub mod device;
mod device_command_fields;
pub mod firmware;
pub mod light;
pub mod persistent_state;
mod rate_meter;
pub mod render_frame;
pub mod rotary_encoder;
pub mod serial;
pub mod stream;

pub use device::{CommandReply, VirtualDevice};
pub use device_command_fields::{DeviceCommandFields, required};
pub use firmware::{FirmwareImageError, FirmwareInfo, ImageChecker};
pub use persistent_state::{PersistentState, PersistentStateError};
pub use render_frame::RenderFrame;
pub use stream::StopReason;
