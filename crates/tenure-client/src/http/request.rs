//! One request.

use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use serde::Serialize;

use crate::idempotency_key::IdempotencyKey;

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
