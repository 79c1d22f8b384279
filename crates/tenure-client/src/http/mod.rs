//! HTTP to the server: its address, the connection, and which requests may be retried.

mod endpoint;
mod response;
mod transport;

use std::fmt::Write as _;
use std::time::Duration;

pub(crate) use endpoint::{Endpoint, ServerAddress, TrustRoots};
pub use endpoint::{InvalidUrl, TlsError};
use hyper::Method;
use hyper::body::Bytes;
use serde::Serialize;
pub(crate) use transport::HttpTransport;

use crate::client::IdempotencyKey;

/// How long an answer may take that nobody waits for in a queue.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of an answer.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// The most bytes of a list: a thousand leases with all their labels.
pub(crate) const MAX_LIST_BYTES: usize = 64 << 20;

/// What may be done when the answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idempotency {
    /// It changes nothing: ask again. No answer is no answer.
    Safe,
    /// Asking twice leads to what asking once does.
    Idempotent,
    /// It would happen twice.
    NonIdempotent,
}

/// One request, ready to be sent.
#[derive(Clone)]
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) idempotency: Idempotency,
    pub(crate) timeout: Duration,
    pub(crate) max_bytes: usize,
}

impl ApiRequest {
    pub(crate) fn get(path: String) -> Self {
        Self::new(Method::GET, path, None, Idempotency::Safe)
    }

    pub(crate) fn post(path: String, body: &impl Serialize, repeat: Idempotency) -> Self {
        let body = serde_json::to_vec(body).expect("requests are plain structures with text for keys");
        Self::new(Method::POST, path, Some(body.into()), repeat)
    }

    pub(crate) fn delete(path: String) -> Self {
        Self::new(Method::DELETE, path, None, Idempotency::Idempotent)
    }

    fn new(method: Method, path: String, body: Option<Bytes>, idempotency: Idempotency) -> Self {
        Self { method, path, body, key: None, idempotency, timeout: RESPONSE_TIMEOUT, max_bytes: MAX_BYTES }
    }

    /// With a key a request may be repeated, whatever it does.
    pub(crate) fn with_key(mut self, key: Option<&IdempotencyKey>) -> Self {
        if let Some(key) = key {
            self.key = Some(key.clone());
            self.idempotency = Idempotency::Idempotent;
        }
        self
    }

    /// The answer may come so much later: the request waits for its turn.
    pub(crate) fn with_wait(mut self, milliseconds: u64) -> Self {
        self.timeout = RESPONSE_TIMEOUT + Duration::from_millis(milliseconds);
        self
    }

    pub(crate) fn with_list_limit(mut self) -> Self {
        self.max_bytes = MAX_LIST_BYTES;
        self
    }
}

/// A path and what is asked of it.
pub(crate) struct PathAndQuery {
    text: String,
    is_first: bool,
}

impl PathAndQuery {
    pub(crate) fn new(path: &str) -> Self {
        Self { text: path.to_owned(), is_first: true }
    }

    /// A path whose last parts come from outside: `/v1/leases`, `id`, `renew`.
    pub(crate) fn path(root: &str, parts: &[&str]) -> Self {
        let mut query = Self::new(root);
        for part in parts {
            query.text.push('/');
            query.push_encoded(part);
        }
        query
    }

    pub(crate) fn with(mut self, name: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.text.push(if std::mem::take(&mut self.is_first) { '?' } else { '&' });
            self.text.push_str(name);
            self.text.push('=');
            self.push_encoded(value);
        }
        self
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn push_encoded(&mut self, value: &str) {
        for byte in value.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    self.text.push(char::from(byte))
                }
                _ => write!(self.text, "%{byte:02X}").expect("a string takes everything"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PathAndQuery;

    #[test]
    fn path_segments_and_parameters_are_percent_encoded() {
        let query = PathAndQuery::path("/v1/leases", &["a/../b?c"])
            .with("resource", Some("a:b&c=d #é"))
            .with("holder", None);
        let text = query.with("limit", Some("3")).into_text();
        assert_eq!(text, "/v1/leases/a%2F..%2Fb%3Fc?resource=a%3Ab%26c%3Dd%20%23%C3%A9&limit=3");
    }
}
