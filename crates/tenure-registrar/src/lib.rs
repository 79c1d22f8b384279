//! The single writer: takes what has gathered, decides, appends, and answers only what is durable.
//!
//! [`Registrar`] is a step function: it is told what happened and what the clock says, and answers with
//! what to do. It has no thread, no socket, no file and no clock of its own, so that a simulator drives
//! the very code that a server runs. The shell around it owns those.
//!
//! ```text
//! request ──> inbox (bounded, stamped on entering)
//!             decide and apply each in order · announce what is over · mark the time
//!             append, one durable write for all
//!             publish, answer, tell who waited         <- only after the write
//! ```

mod pending_batch;
mod registrar;
pub mod runtime;
mod tick_clock;

pub use pending_batch::{BatchSettings, leaf_reference};
pub use registrar::{AppendFailure, BatchWrite, Effect, Input, Registrar, Reply, RequestId, StartFailure};
pub use tick_clock::TickClock;
