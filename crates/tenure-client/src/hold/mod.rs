//! A lease that is waited for, kept alive, and given back.
//!
//! ```text
//! holding.rs   what is wanted, and for how long to wait
//! driver.rs    a task per lease: turns the keeper's effects into requests, and answers into its inputs
//! heard.rs     what an answer means to the keeper
//! requests.rs  what each of the keeper's calls asks of the server
//! withdraw.rs  leaves nothing behind when nobody wants the lease any more
//! place.rs     where in the queue one is, for people
//! guard.rs     what a program holds
//! ```

mod error;
mod held_lease;
mod hold_request;
mod keepalive_task;
mod queue_position;
mod request_events;
mod requests;
mod withdraw;

pub use error::{HoldError, LeaseLost};
pub use held_lease::HeldLease;
pub use hold_request::{HoldRequest, WaitLimit};
pub use queue_position::QueuePosition;
