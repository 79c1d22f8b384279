//! The HTTP service: authenticates, parses once, asks the registrar, and says what it said.
//!
//! ```text
//! connection ──> net            one task each, in bounds; a header within 5 s, a body within 10 s
//!                http/origin    is it meant for us, and not sent by a web page from elsewhere
//!                http/auth      who speaks, and whether that one may
//!                leases, work   handlers: read strictly, ask, answer
//!                intents        what is wanted, and the worker that carries it out
//!                agents         what agents are about to touch, and who of them waits
//!                files          which session of a coding agent may change which file
//!                control        the device: a WebSocket and REST behind one lease
//!                engine         alone knows the writer
//! ```
//!
//! Nothing here decides about a lease, and no secret has a `Debug` or goes into an error.

mod agents;
mod app;
mod control;
mod engine;
mod events;
mod explain;
mod files;
mod http;
mod intents;
mod leases;
mod metrics;
mod net;
mod secret_file;
mod server;
mod stream;
mod tokens;
mod work;

pub use agents::AgentSettings;
pub use control::{ControlSettings, DeviceStoreError, RotaryEncoderSettings, SerialSettings};
pub use engine::{RegistrarError, RegistrarShutdownError};
pub use files::FileSettings;
pub use http::origin::HostCheck;
pub use intents::{
    EmptySecret, IntentSecret, IntentSecrets, IntentSettings, InvalidNetwork, Network, WorkerApi,
};
pub use leases::resource_pools::{MAX_MEMBERS, ResourcePoolError, ResourcePools};
pub use net::ConnectionLimits;
pub use net::local_socket::{LocalSocketError, LocalSocketSettings};
pub use net::tls::{TlsError, TlsFiles};
pub use secret_file::SecretFileError;
pub use server::{Server, Settings, StartError, StopError};
pub use tokens::{AdminToken, InvalidAdminToken, TokenFileError};
