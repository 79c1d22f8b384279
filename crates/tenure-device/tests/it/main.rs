//! What the virtual light promises.

mod determinism;
mod device;
mod device_guide;
mod firmware;
mod firmware_image;
mod random_commands;
mod render_frames;
mod stream;
mod support;
mod uploads;
