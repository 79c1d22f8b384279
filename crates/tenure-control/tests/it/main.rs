//! What the control face's pure part promises.

mod determinism;
mod device;
mod firmware;
mod frames;
mod guide;
mod image;
mod inputs;
mod stream;
mod support;
mod uploads;
