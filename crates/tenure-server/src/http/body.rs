//! Reads requests: a body of JSON, neither too large nor too slow, and the query of an address.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, Query, Request};
use axum::http::{HeaderMap, Uri, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tenure_api::{Code, strict};
use tenure_core::kernel::RequestDigest;
use tokio::time::timeout;

use super::response::HttpError;

/// The largest body, of most requests.
const MAX_BYTES: usize = 64 << 10;
/// The largest body of an intent, which may have many particulars.
pub(crate) const MAX_LARGE_BYTES: usize = 1 << 20;
/// The largest body of an agent, which may name many things: 256 intents, each with a path and a remark of 4 KiB.
pub(crate) const MAX_MANIFEST_BYTES: usize = 4 << 20;
/// A body must be complete within this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A request that was read from a body of at most `MAX` bytes.
pub(crate) struct RequestBody<T, const MAX: usize = MAX_BYTES> {
    pub(crate) request: T,
    /// Of its bytes as they came, to tell a repeated request from another one.
    pub(crate) digest: RequestDigest,
}

impl<S: Send + Sync, T: DeserializeOwned, const MAX: usize> FromRequest<S> for RequestBody<T, MAX> {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        let bytes = json_bytes(request, MAX).await?;
        let request = strict::read(&bytes)?;
        Ok(Self { request, digest: RequestDigest::of(&bytes) })
    }
}

async fn json_bytes(request: Request, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
    let (parts, body) = request.into_parts();
    let bytes = in_time(body, max_bytes).await?;
    if is_json(&parts.headers) {
        return Ok(bytes);
    }
    Err(HttpError::new(Code::UnsupportedType, "send JSON, with `Content-Type: application/json`"))
}

/// All of a body, if it is not too large and not too slow.
pub(crate) async fn bytes(body: Body) -> Result<Vec<u8>, HttpError> {
    in_time(body, MAX_BYTES).await
}

async fn in_time(body: Body, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
    let too_slow = |_| HttpError::new(Code::TooSlow, "the body was not complete within 10 s; send it again");
    timeout(BODY_TIMEOUT, collect(body, max_bytes)).await.map_err(too_slow)?
}

async fn collect(body: Body, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
    let too_large = || HttpError::new(Code::TooLarge, format!("a body has at most {max_bytes} bytes"));
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_large());
    }
    match Limited::new(body, max_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(HttpError::new(Code::Invalid, "the body ended before it was complete")),
    }
}

/// Whether a body says that it is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return false };
    let Ok(text) = only.to_str() else { return false };
    let (media_type, parameters) = text.split_once(';').unwrap_or((text, ""));
    let charset = parameters.trim().to_ascii_lowercase();
    media_type.trim().eq_ignore_ascii_case("application/json")
        && ["", "charset=utf-8", "charset=\"utf-8\""].contains(&charset.as_str())
}

/// Rejects a list that is too long.
pub(crate) fn check_count(field: &str, count: usize, max: usize) -> Result<(), HttpError> {
    if count <= max {
        return Ok(());
    }
    Err(HttpError::invalid(field, &format!("has {count} entries; at most {max} are allowed")))
}

/// Reads an object whose fields depend on the command.
pub(crate) fn read_object(json: &[u8]) -> Result<Map<String, Value>, HttpError> {
    match strict::read(json)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(HttpError::new(Code::Invalid, "the body must be a JSON object")),
    }
}

/// Reads the part of an address after `?`. A refusal says why, and repeats nothing that could be a secret.
pub(crate) fn parse_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, HttpError> {
    let refused =
        |error: QueryRejection| HttpError::new(Code::Invalid, without_long_words(&error.body_text()));
    Query::try_from_uri(uri).map(|Query(parsed)| parsed).map_err(refused)
}

/// What a caller wrote, without what could be a secret in the wrong place: no token of ours is as short as any name of
/// a field.
fn without_long_words(text: &str) -> String {
    let is_long = |word: &str| word.len() > 32;
    text.split(' ').map(|word| if is_long(word) { "…" } else { word }).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_secrets_are_redacted_from_errors() {
        assert_eq!(without_long_words("unknown variant `x`, expected"), "unknown variant `x`, expected");
        let secret = "tnr_qZ3-0aB_cDeFgHiJkLmNoPqRsTuVwXyZ0123456789A";
        assert_eq!(
            without_long_words(&format!("unknown variant `{secret}`, expected")),
            "unknown variant … expected"
        );
    }
}
