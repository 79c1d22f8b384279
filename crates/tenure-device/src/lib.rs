//! The virtual light: a device that needs no hardware, and its inputs.
//!
//! ```text
//! device            every command of the table, carried out
//! light             what it shows: effects, parameters, presets, transport, settings
//! stream            frames that an owner sends; `render_frame` is one of them, byte for byte
//! firmware          images, checked while they come in
//! persistent_state  what of it outlives a restart
//! serial            lines that people type at a serial port, to commands
//! rotary_encoder    records of an input device, to commands
//! ```
//!
//! No clock, disk, network or randomness: time comes in as a tick, and everything here can be replayed.

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
