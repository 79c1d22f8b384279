//! Intents: an API that only accepts, and a worker that alone holds the leases.

mod office;

pub use office::Office;
