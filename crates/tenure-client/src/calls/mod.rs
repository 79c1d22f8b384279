//! What can be asked: one file per subject.

mod agents;
mod events;
mod files;
mod leases;
mod queue;
mod sessions;
mod sse;
mod work;

pub use events::{EventFilter, EventStream, From};
pub use leases::Filter;
pub(crate) use leases::{acquire, acquire_all};
