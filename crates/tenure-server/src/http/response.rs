//! What goes back: JSON, or a problem.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tenure_api::{Code, Problem};
use tenure_core::rules::names::InvalidInput;

/// A request that did not get what it wanted.
#[derive(Debug)]
pub(crate) struct HttpError(pub(crate) Box<Problem>);

impl HttpError {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)))
    }

    /// A value that cannot be accepted. The value itself is not repeated: it may be a secret in the wrong place.
    pub(crate) fn invalid(field: &str, reason: &str) -> Self {
        Self::new(Code::Invalid, format!("{field}: {reason}"))
    }

    /// The same, where the field is part of something else.
    pub(crate) fn in_field(mut self, place: &str) -> Self {
        if self.0.code == Code::Invalid {
            self.0.detail = format!("{place}.{}", self.0.detail);
        }
        self
    }
}

impl From<InvalidInput> for HttpError {
    fn from(invalid: InvalidInput) -> Self {
        Self::invalid(invalid.field, &invalid.reason)
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let code = self.0.code;
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = with_type(status, &self.0, Problem::MEDIA_TYPE);
        // For whoever counts.
        response.extensions_mut().insert(code);
        let headers = response.headers_mut();
        if let Some(seconds) = code.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if code == Code::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tenure\""));
        }
        response
    }
}

pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    with_type(status, body, "application/json")
}

fn with_type(status: StatusCode, body: &impl Serialize, media_type: &'static str) -> Response {
    let bytes = serde_json::to_vec(body).expect("text, numbers and maps of text can be written as JSON");
    // What is true now may be wrong in a moment, and some of it is a token.
    let headers = [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-store")];
    (status, headers, bytes).into_response()
}
