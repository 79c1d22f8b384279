//! What can be asked: one file per subject.

mod agents;
mod events;
mod files;
mod intents;
mod leases;
mod queue;
mod sse;
mod work;

pub use events::{EventFilter, EventStartPosition, EventStream};
pub use leases::LeaseFilter;
pub(crate) use leases::{acquire_all_request, acquire_request};
