//! `tenure mcp`: what agents ask of Tenure, as tools of the Model Context Protocol.
//!
//! ```text
//! stdio.rs, http/   how a client reaches this process, and with whose rights it speaks
//! service.rs        the tools by their names; one file for each of them
//! place.rs          what a path means, touching.rs what is done to it
//! said.rs           what a model is told: a text that teaches, and the same as data
//! refused.rs        the same when it did not go well
//! ```
//!
//! It remembers nothing between two calls: who asks and which leases are meant stand in the arguments, or in the defaults
//! that it was started with. Whatever is decided is decided by the Tenure server.

mod arguments;
mod declare;
mod error;
mod heartbeat;
mod http;
mod path_resolver;
mod release;
mod report;
mod resource_argument;
mod response;
mod service;
mod status;
mod stdio;
mod who;

pub use self::http::{HttpSettings, serve};
pub use self::path_resolver::PathResolver;
pub use self::service::{CallerDefaults, Tools};
pub use self::stdio::serve_stdio;
