//! One request.

use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use serde::Serialize;

use crate::key::IdempotencyKey;

/// How long an answer may take that nobody waits for in a queue.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of an answer.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// The most bytes of a list: a thousand leases with all their labels.
pub(crate) const MOST_LIST_BYTES: usize = 64 << 20;

/// What may be done when the answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing: ask again. No answer is no answer.
    Reads,
    /// Asking twice leads to what asking once does.
    Harmless,
    /// It would happen twice.
    Never,
}

/// One request, ready to be sent.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) repeat: Repeat,
    pub(crate) patience: Duration,
    pub(crate) most_bytes: usize,
}

impl Call {
    pub(crate) fn get(path: String) -> Self {
        Self::new(Method::GET, path, None, Repeat::Reads)
    }

    pub(crate) fn post(path: String, body: &impl Serialize, repeat: Repeat) -> Self {
        let body = serde_json::to_vec(body).expect("requests are plain structures with text for keys");
        Self::new(Method::POST, path, Some(body.into()), repeat)
    }

    pub(crate) fn delete(path: String) -> Self {
        Self::new(Method::DELETE, path, None, Repeat::Harmless)
    }

    fn new(method: Method, path: String, body: Option<Bytes>, repeat: Repeat) -> Self {
        Self { method, path, body, key: None, repeat, patience: PATIENCE, most_bytes: MOST_BYTES }
    }

    /// With a key a request may be repeated, whatever it does.
    pub(crate) fn with_key(mut self, key: Option<&IdempotencyKey>) -> Self {
        if let Some(key) = key {
            self.key = Some(key.clone());
            self.repeat = Repeat::Harmless;
        }
        self
    }

    /// The answer may come so much later: the request waits for its turn.
    pub(crate) fn waiting(mut self, milliseconds: u64) -> Self {
        self.patience = PATIENCE + Duration::from_millis(milliseconds);
        self
    }

    pub(crate) fn for_a_list(mut self) -> Self {
        self.most_bytes = MOST_LIST_BYTES;
        self
    }
}
