//! The control face with sockets and a clock around it.

#[cfg_attr(not(test), expect(dead_code, reason = "whoever has the device starts it"))]
mod inputs;
mod settings;

pub use settings::{ControlSettings, EncoderSettings, SerialSettings};
