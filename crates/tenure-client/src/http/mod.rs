//! HTTP to the server: where it is, how it is reached, and which requests may be sent twice.

mod connection_pool;
mod endpoint;
mod path_and_query;
mod request;
mod response;
mod tls;
mod transport;

pub use endpoint::InvalidUrl;
pub(crate) use endpoint::{Endpoint, ServerAddress};
pub(crate) use path_and_query::PathAndQuery;
pub(crate) use request::{ApiRequest, Idempotency};
pub use tls::TlsError;
pub(crate) use tls::TrustRoots;
pub(crate) use transport::HttpTransport;
