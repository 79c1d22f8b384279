//! Acquires one lease or several, and revokes a grant that cannot be delivered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tenure_api::{Code, LeaseGrant, LeaseGrants};
use tenure_core::kernel;
use tenure_core::kernel::{Fence, Holder, IdempotencyKey, LeaseRequest, Tick};
use tenure_registrar::runtime;

use super::acquire_or_wait::acquire_or_wait;
use super::parse::{ParsedAcquire, contention_policy, parse_idempotency_key};
use super::show::find;
use crate::app::App;
use crate::engine::RevokeOnDrop;
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::response::{HttpError, json, unexpected};
use crate::leases::resource_pools::ResourcePools;

/// Acquire a lease.
///
/// With `waitMs`, waits in the queue until the lease is granted or the wait times out.
#[utoipa::path(
    post,
    path = "/v1/leases",
    tag = "leases",
    operation_id = "acquire",
    params(("Idempotency-Key" = Option<String>, Header, description = "Idempotency key, 1 to 255 visible ASCII characters. Repeating the request with it returns the same leases until 60 s after they end")),
    request_body = tenure_api::AcquireRequest,
    responses((status = 201, description = "Lease was granted", body = tenure_api::LeaseGrant)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "HOLDER_TAKEN", "HELD", "KEY_REUSED", "DEADLOCK", "EXPIRED", "QUEUE_FULL", "QUOTA_EXCEEDED"])))
)]
pub(super) async fn acquire(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let key = parse_idempotency_key(&headers, body.digest)?;
    let (granted, revoke_on_drop) = acquire_one(&app, &caller, body.fields, key).await?;
    Ok(revoke_unless_delivered(json(StatusCode::CREATED, &granted), revoke_on_drop))
}

/// Acquires. What was granted is taken back if it is not settled that it was told.
pub(crate) async fn acquire_one(
    app: &App,
    caller: &Caller,
    fields: Fields,
    key: Option<IdempotencyKey>,
) -> Result<(LeaseGrant, RevokeOnDrop), HttpError> {
    let ParsedAcquire { holder, request, wait_ms } = ParsedAcquire::read(fields, &app.pools)?;
    let contention = contention_policy(wait_ms);
    let principal = caller.principal.clone();
    let command =
        kernel::Acquire { principal, holder, requests: vec![request], contention_policy: contention, key };
    let grant = acquire_or_wait(app, caller, command).await?;
    let [fence] = grant.leases[..] else { return Err(unexpected()) };
    Ok((granted(app, &grant.response, fence, grant.stamp)?, grant.revoke_on_drop))
}

/// Acquire several leases atomically.
///
/// All entries have the same holder and the same `waitMs`.
#[utoipa::path(
    post,
    path = "/v1/leases/batch",
    tag = "leases",
    operation_id = "acquireAll",
    params(("Idempotency-Key" = Option<String>, Header, description = "Idempotency key, 1 to 255 visible ASCII characters. Repeating the request with it returns the same leases until 60 s after they end")),
    request_body = tenure_api::BatchAcquireRequest,
    responses((status = 201, description = "All leases were granted", body = tenure_api::LeaseGrants)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "HOLDER_TAKEN", "HELD", "KEY_REUSED", "DEADLOCK", "EXPIRED", "QUEUE_FULL", "QUOTA_EXCEEDED"])))
)]
pub(super) async fn acquire_all(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let key = parse_idempotency_key(&headers, body.digest)?;
    let BatchRequest { holder, requests, wait_ms } = read(body.fields, &app.pools)?;
    let contention = contention_policy(wait_ms);
    let principal = caller.principal.clone();
    let command = kernel::Acquire { principal, holder, requests, contention_policy: contention, key };
    let grant = acquire_or_wait(&app, &caller, command).await?;
    let leases = grant.leases.iter().map(|fence| granted(&app, &grant.response, *fence, grant.stamp));
    let granted = LeaseGrants { leases: leases.collect::<Result<_, _>>()? };
    Ok(revoke_unless_delivered(json(StatusCode::CREATED, &granted), grant.revoke_on_drop))
}

/// What is wanted together: one holder waits once for all of it.
struct BatchRequest {
    holder: Holder,
    requests: Vec<LeaseRequest>,
    wait_ms: u64,
}

fn read(mut fields: Fields, pools: &ResourcePools) -> Result<BatchRequest, HttpError> {
    let entries = fields.objects("leases")?;
    fields.reject_remaining()?;
    let read =
        |(index, fields)| ParsedAcquire::read(fields, pools).map_err(|failure| in_entry(index, failure));
    let requests = entries.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = requests.first() else {
        return Err(HttpError::invalid("leases", "is empty; ask for at least one resource"));
    };
    let (holder, wait_ms) = (first.holder.clone(), first.wait_ms);
    for (index, entry) in requests.iter().enumerate() {
        let differs = [("holder", entry.holder != holder), ("waitMs", entry.wait_ms != wait_ms)];
        if let Some((field, _)) = differs.into_iter().find(|(_, differs)| *differs) {
            let reason = "must be the same in every entry; ask for the others in another request";
            return Err(in_entry(index, HttpError::invalid(field, reason)));
        }
    }
    let requests = requests.into_iter().map(|entry| entry.request).collect();
    Ok(BatchRequest { holder, requests, wait_ms })
}

/// Says in which entry a field is wrong.
fn in_entry(index: usize, mut failure: HttpError) -> HttpError {
    if failure.0.code == Code::Invalid {
        failure.0.detail = format!("leases[{index}].{}", failure.0.detail);
    }
    failure
}

/// A lease that was given to a request that came in at `stamp`.
pub(crate) fn granted(
    app: &App,
    response: &runtime::Response,
    fence: Fence,
    stamp: Tick,
) -> Result<LeaseGrant, HttpError> {
    let shown = app.registrar.read(|state| {
        let live = state
            .lease(fence)
            .map(|lease| (lease.terms.issued_at, lease.terms.expires_at, lease.terms.nonce));
        let ended = || {
            state
                .ended_lease(fence)
                .map(|lease| (lease.terms.issued_at, lease.terms.expires_at, lease.terms.nonce))
        };
        let (issued_at, expires_at, nonce) = live.or_else(ended)?;
        // A request that waited came in long before its lease began.
        let lease = find(state, fence, stamp.max(issued_at))?;
        let token = app.token_key.lease_token(&lease.id, nonce).to_string();
        // A client counts from when it sent the request, which was before the stamp.
        Some((lease, token, expires_at.since(stamp).as_millis()))
    });
    let (lease, token, valid_for_ms) = shown.ok_or_else(unexpected)?;
    let passport = app.registrar.passport(response, fence);
    Ok(LeaseGrant { lease, token, passport, valid_for_ms })
}

/// The answer, together with what is taken back if nobody takes the answer.
pub(crate) fn revoke_unless_delivered(response: Response, revoke_on_drop: RevokeOnDrop) -> Response {
    response.map(|body| Body::new(Delivery { body, revoke_on_drop }))
}

struct Delivery {
    body: Body,
    revoke_on_drop: RevokeOnDrop,
}

impl HttpBody for Delivery {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // A small answer is one frame.
        self.revoke_on_drop.disarm();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::engine::acquire::tests::TestRegistrar;
    use crate::http::response::json;

    #[test]
    fn dropping_the_response_of_a_grant_revokes_it() {
        let registrar = TestRegistrar::open();
        let grant = registrar.grant("gone");
        let next = registrar.enqueue("next", None);
        drop(revoke_unless_delivered(json(StatusCode::CREATED, &"granted"), grant.revoke_on_drop));
        registrar.wait_for_grant(next);
    }

    #[test]
    fn a_grant_stays_after_its_response_was_sent() {
        let registrar = TestRegistrar::open();
        let grant = registrar.grant("first");
        let response = revoke_unless_delivered(json(StatusCode::CREATED, &"granted"), grant.revoke_on_drop);
        assert_eq!(response.body().size_hint().exact(), Some(9), "its length is known");
        let body = registrar.runtime.block_on(response.into_body().collect()).unwrap();
        assert_eq!(body.to_bytes(), "\"granted\"");
        // Whatever was taken back would be by the time that this is answered.
        let next = registrar.enqueue("next", None);
        assert!(registrar.registrar.read(|state| state.queue_ticket(next.ticket).is_some()));
    }
}
