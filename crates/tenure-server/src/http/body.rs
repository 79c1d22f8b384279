//! Reads a body: JSON, not too large, not too slow.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use tenure_api::Code;
use tenure_core::kernel::RequestDigest;
use tokio::time::timeout;

use super::fields::Fields;
use super::response::HttpError;

/// The largest body, of most requests.
const MAX_BYTES: usize = 64 << 10;
/// The largest body of an intent, which may have many particulars.
const MAX_LARGE_BYTES: usize = 1 << 20;
/// The largest body of an agent, which may name many things: 256 intents, each with a path and a remark of 4 KiB.
const MAX_MANIFEST_BYTES: usize = 4 << 20;
/// How much more than that is read and dropped, so that a caller that still sends can read why it was refused.
const MAX_DISCARDED_BYTES: usize = 1 << 20;
/// A body must be complete within this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct JsonBody {
    pub(crate) fields: Fields,
    /// Of its bytes as they came, to tell a repeated request from another one.
    pub(super) digest: RequestDigest,
}

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        let bytes = json_bytes(request, MAX_BYTES).await?;
        Ok(Self { fields: Fields::read(&bytes)?, digest: RequestDigest::of(&bytes) })
    }
}

/// A body that was read, and may have been larger than most.
pub(crate) struct LargeJsonBody(pub(crate) Fields);

impl<S: Send + Sync> FromRequest<S> for LargeJsonBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        Ok(Self(Fields::read(&json_bytes(request, MAX_LARGE_BYTES).await?)?))
    }
}

/// A body that was read, and may have named many things.
pub(crate) struct ManifestBody(pub(crate) Fields);

impl<S: Send + Sync> FromRequest<S> for ManifestBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        Ok(Self(Fields::read(&json_bytes(request, MAX_MANIFEST_BYTES).await?)?))
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

async fn collect(mut body: Body, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
    let too_large = || HttpError::new(Code::TooLarge, format!("a body has at most {max_bytes} bytes"));
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > max_bytes + MAX_DISCARDED_BYTES {
        return Err(too_large());
    }
    let (mut bytes, mut dropped) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let cut_short = |_| HttpError::new(Code::Invalid, "the body ended before it was complete");
        let Ok(data) = frame.map_err(cut_short)?.into_data() else { continue };
        if dropped == 0 && bytes.len() + data.len() <= max_bytes {
            bytes.extend_from_slice(&data);
            continue;
        }
        dropped += data.len();
        if dropped > MAX_DISCARDED_BYTES {
            break;
        }
    }
    if dropped > 0 { Err(too_large()) } else { Ok(bytes) }
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
