//! The HTTP server: authenticates, parses, submits commands to the registrar, and renders its responses.
//!
//! ```text
//! connection ──> net             one task each, with limits and timeouts; TLS
//!                http            Host, Origin, permission of the route, strict body, response
//!                leases, stream  plain leases; the same over one WebSocket
//!                work            leases with a scope and a budget
//!                intents         intents, and the worker that carries them out
//!                agents          manifests of agents, and which agent waits
//!                files           which session of a coding agent may change which file
//!                control         the device: WebSocket and REST behind one lease
//!                events, explain event stream; why a resource is free or not
//!                tokens          API tokens and lease tokens
//!                engine          the registrar for async callers
//!                server, app     start and stop; what every route needs
//!                metrics         counters for Prometheus; secret_file: files that only their owner can read
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
