//! Acquires one lease or several, and revokes a grant that cannot be delivered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tenure_api::{AcquireRequest, BatchAcquireRequest, Code, LeaseGrant, LeaseGrants};
use tenure_core::kernel::{self, Fence, IdempotencyKey, Principal, Tick};
use tenure_registrar::runtime;

use super::acquire_or_wait::acquire_or_wait;
use super::parse::{contention_policy, holder, lease_request, parse_idempotency_key};
use super::show::find;
use crate::app::App;
use crate::engine::RevokeOnDrop;
use crate::http::auth::Caller;
use crate::http::body::RequestBody;
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
    body: RequestBody<AcquireRequest>,
) -> Result<Response, HttpError> {
    let key = parse_idempotency_key(&headers, body.digest)?;
    let (granted, revoke_on_drop) = acquire_one(&app, &caller, &body.request, key).await?;
    Ok(revoke_unless_delivered(json(StatusCode::CREATED, &granted), revoke_on_drop))
}

/// Acquires. What was granted is taken back if it is not settled that it was told.
pub(crate) async fn acquire_one(
    app: &App,
    caller: &Caller,
    request: &AcquireRequest,
    key: Option<IdempotencyKey>,
) -> Result<(LeaseGrant, RevokeOnDrop), HttpError> {
    let command = kernel::Acquire {
        requests: vec![lease_request(request, &app.pools)?],
        holder: holder("holder", &request.holder)?,
        principal: caller.principal.clone(),
        contention_policy: contention_policy(request.wait_ms),
        key,
    };
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
    body: RequestBody<BatchAcquireRequest>,
) -> Result<Response, HttpError> {
    let key = parse_idempotency_key(&headers, body.digest)?;
    let command = batch_command(&body.request, &app.pools, caller.principal.clone(), key)?;
    let grant = acquire_or_wait(&app, &caller, command).await?;
    let leases = grant.leases.iter().map(|fence| granted(&app, &grant.response, *fence, grant.stamp));
    let granted = LeaseGrants { leases: leases.collect::<Result<_, _>>()? };
    Ok(revoke_unless_delivered(json(StatusCode::CREATED, &granted), grant.revoke_on_drop))
}

/// All entries in one command: one holder waits once for all of them.
fn batch_command(
    batch: &BatchAcquireRequest,
    pools: &ResourcePools,
    principal: Principal,
    key: Option<IdempotencyKey>,
) -> Result<kernel::Acquire, HttpError> {
    let Some(first) = batch.leases.first() else {
        return Err(HttpError::invalid("leases", "is empty; ask for at least one resource"));
    };
    let entries = batch.leases.iter().enumerate();
    let parse = |(index, entry)| lease_request(entry, pools).map_err(|failure| in_entry(index, failure));
    let requests = entries.clone().map(parse).collect::<Result<Vec<_>, _>>()?;
    let holder = holder("holder", &first.holder).map_err(|failure| in_entry(0, failure))?;
    for (index, entry) in entries {
        let differs = [("holder", entry.holder != first.holder), ("waitMs", entry.wait_ms != first.wait_ms)];
        if let Some((field, _)) = differs.into_iter().find(|(_, differs)| *differs) {
            let reason = "must be the same in every entry; ask for the others in another request";
            return Err(in_entry(index, HttpError::invalid(field, reason)));
        }
    }
    let contention_policy = contention_policy(first.wait_ms);
    Ok(kernel::Acquire { principal, holder, requests, contention_policy, key })
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
