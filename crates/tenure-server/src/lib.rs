//! The HTTP service: authenticates, parses once, asks the registrar, and says what it said.
//!
//! ```text
//! connection ──> http/accept    one task each; a header within 5 s, a body within 10 s
//!                http/origin    is it meant for us, and not sent by a web page from elsewhere
//!                http/auth      who speaks
//!                http/leases    one file per route: read strictly, ask, answer
//!                registrar      the only file that knows the writer
//! ```
//!
//! Nothing here decides about a lease, and no secret has a `Debug` or goes into an error.

mod app;
mod http;
mod metrics;
mod refusals;
mod registrar;
mod secret_file;
mod server;
mod tokens;

pub use registrar::{RegistrarEnd, RegistrarError};
pub use secret_file::SecretFileError;
pub use server::{Server, Settings, StartError, StopError};
pub use tokens::{AdminToken, WeakToken};
