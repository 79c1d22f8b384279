//! The lease in front of a device that knows nothing of leases: what of that which is sent to it would move it.
//!
//! ```text
//! table         what is known of a device, as text: one line for each address and message
//! request_rule  which requests a line is about, and what a request must be like to be known at all
//! message_rule  the same for a WebSocket
//! wled          what ships with Tenure
//! ```
//!
//! **Unknown means mutates.** A line can only say that something is harmless. Whatever is spelt in an unusual way
//! (percent-encoded, with empty or dotted segments, in other letters, with parameters that no line has) is not what
//! the line is about, even if the device would think so.

pub mod message_rule;
pub mod request_rule;
pub mod rules;
#[cfg(test)]
mod tests;
pub mod wled;

pub use message_rule::{DeviceMessage, is_for_tenure};
pub use request_rule::RequestHead;
pub use rules::{Rules, RulesError};
