//! HTTP to the server: where it is, how it is reached, and which requests may be sent twice.

mod answer;
mod call;
mod endpoint;
mod exchange;
mod pool;
mod query;
mod tls;

pub(crate) use call::{Call, Repeat};
pub use endpoint::InvalidUrl;
pub(crate) use endpoint::{Endpoint, Place};
pub(crate) use exchange::Exchange;
pub(crate) use query::Query;
pub use tls::TlsError;
pub(crate) use tls::Trust;
