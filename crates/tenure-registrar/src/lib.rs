//! The single writer: decides requests in batches, appends them to the ledger, and responds when they are durable.
//!
//! [`Registrar`] is a step function: its inputs are requests, completed writes and the clock, its effects say what to do. It
//! has no thread, socket, file or clock of its own: [`runtime`] has those, and a simulator drives the same code.
//!
//! ```text
//! request ──> runtime/inbox      bounded; stamps the arrival (tick_clock)
//!             pending_batch      decide and apply each request in order
//!             registrar          then sweep expired leases and record the clock
//!             runtime/appender   one durable write for all
//!             runtime/publisher  view, observers, responses, waiters     <- only after the write
//! ```

mod pending_batch;
mod registrar;
pub mod runtime;
mod tick_clock;

pub use pending_batch::{BatchSettings, leaf_reference};
pub use registrar::{AppendFailure, BatchWrite, Effect, Input, Registrar, Reply, RequestId, StartFailure};
pub use tick_clock::TickClock;
