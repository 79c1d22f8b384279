//! Requests to the server: one file per subject.

mod agents;
mod control;
mod events;
mod files;
mod intents;
mod leases;
mod queue;
mod sse;
mod tokens;
mod work;

pub use events::{EventFilter, EventStartPosition, EventStream};
pub use leases::LeaseFilter;
pub(crate) use leases::{acquire_all_request, acquire_request};
