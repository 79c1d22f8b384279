//! Parses a request for one lease, which may be part of a batch.

use axum::http::HeaderMap;
use tenure_api::{AcquireRequest, Code};
use tenure_core::kernel::{
    ContentionPolicy, Holder, IdempotencyKey, Labels, LeaseMode, LeaseRequest, Nonce, RequestDigest,
    TickDuration,
};

use crate::http::response::HttpError;
use crate::leases::resource_pools::ResourcePools;
use crate::{control, intents};

/// The longest resource and holder that the plain API takes, in bytes: what is stored is then what was asked for.
const MAX_NAME_BYTES: usize = 128;
const MAX_KEY_BYTES: usize = 255;

/// The kernel's form of one requested lease.
pub(super) fn lease_request(
    request: &AcquireRequest,
    pools: &ResourcePools,
) -> Result<LeaseRequest, HttpError> {
    check_length("resource", &request.resource)?;
    let labels = request.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let (resource, alternatives) = pools.resolve(&request.resource)?;
    let request = LeaseRequest {
        resource,
        alternatives,
        mode: request.mode.as_deref().map_or(Ok(LeaseMode::Exclusive), mode)?,
        ttl: TickDuration::from_millis(request.ttl_ms),
        nonce: nonce()?,
        labels: Labels::parse(labels)?,
    };
    if request.resources().any(|resource| resource.as_str().starts_with(control::DOMAIN)) {
        let detail = "a control lease belongs to a WebSocket at /ws: send `control.acquire` there; resources that \
                      begin with `control:` cannot be leased here";
        return Err(HttpError::new(Code::Forbidden, detail));
    }
    if request.resources().any(|resource| resource.as_str().starts_with(intents::DOMAIN)) {
        let detail = "resources that begin with `system:` are the server's own and cannot be leased here; a worker \
                      takes its guard at /api/v3/worker/guard";
        return Err(HttpError::new(Code::Forbidden, detail));
    }
    Ok(request)
}

/// What to do when something is in the way.
pub(super) fn contention_policy(wait_ms: u64) -> ContentionPolicy {
    match wait_ms {
        0 => ContentionPolicy::Deny,
        _ => ContentionPolicy::Queue { wait_timeout: TickDuration::from_millis(wait_ms) },
    }
}

/// A holder, as the plain API takes it.
pub(crate) fn holder(field: &'static str, name: &str) -> Result<Holder, HttpError> {
    check_length(field, name)?;
    Holder::parse(name).map_err(|invalid| HttpError::invalid(field, &invalid.reason))
}

/// A mode of plain leases. Those of the agents are not for here.
pub(super) fn mode(name: &str) -> Result<LeaseMode, HttpError> {
    let known = [LeaseMode::Exclusive, LeaseMode::Shared].into_iter().find(|mode| mode.as_str() == name);
    known.ok_or_else(|| HttpError::invalid("mode", "must be `exclusive` or `shared`"))
}

/// What the header `Idempotency-Key` comes down to.
pub(crate) fn parse_idempotency_key(
    headers: &HeaderMap,
    body: RequestDigest,
) -> Result<Option<IdempotencyKey>, HttpError> {
    let mut all = headers.get_all("idempotency-key").iter();
    let Some(value) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(HttpError::invalid("Idempotency-Key", "must stand once"));
    }
    derive_idempotency_key("Idempotency-Key", value.as_bytes(), body).map(Some)
}

/// What a key comes down to that a caller chose.
pub(crate) fn derive_idempotency_key(
    field: &str,
    key: &[u8],
    body: RequestDigest,
) -> Result<IdempotencyKey, HttpError> {
    if (1..=MAX_KEY_BYTES).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic) {
        return Ok(IdempotencyKey { key: RequestDigest::of(key), body });
    }
    let reason = format!("must have 1 to {MAX_KEY_BYTES} visible ASCII characters");
    Err(HttpError::invalid(field, &reason))
}

fn check_length(field: &str, name: &str) -> Result<(), HttpError> {
    if name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    let reason = format!("has {} bytes; at most {MAX_NAME_BYTES} are allowed", name.len());
    Err(HttpError::invalid(field, &reason))
}

pub(crate) fn nonce() -> Result<Nonce, HttpError> {
    let mut bytes = [0; 16];
    let failed = |_| HttpError::new(Code::Internal, "the system gives no random bytes; nothing happened");
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(Nonce(bytes))
}
