//! `POST /v1/leases`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure_api::Granted;
use tenure_core::kernel::{self, RequestKey};

use super::delivery::deliver;
use super::granted::granted;
use super::obtain::obtain;
use super::wish::{Wish, contention, request_key};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::refusal::unexpected;
use crate::registrar::Undelivered;

/// Acquire a lease.
///
/// With `waitMs` the request stays open until its turn has come, or the wait is over.
#[utoipa::path(
    post,
    path = "/v1/leases",
    tag = "leases",
    operation_id = "acquire",
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters. The same request with the same key gets the same leases, until 60 s after they end")),
    request_body = tenure_api::Acquire,
    responses((status = 201, description = "The lease is yours", body = tenure_api::Granted)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "HOLDER_TAKEN", "HELD", "KEY_REUSED", "DEADLOCK", "EXPIRED", "QUEUE_FULL", "QUOTA_EXCEEDED"])))
)]
pub(super) async fn acquire(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, Failure> {
    let key = request_key(&headers, body.digest)?;
    let (granted, undelivered) = acquire_one(&app, &caller, body.fields, key).await?;
    Ok(deliver(json(StatusCode::CREATED, &granted), undelivered))
}

/// Acquires. What was granted is taken back if it is not settled that it was told.
pub(in crate::http) async fn acquire_one(
    app: &App,
    caller: &Caller,
    fields: Fields,
    key: Option<RequestKey>,
) -> Result<(Granted, Undelivered), Failure> {
    let Wish { holder, want, wait_ms } = Wish::read(fields, &app.pools)?;
    let contention = contention(wait_ms);
    let principal = caller.principal.clone();
    let command = kernel::Acquire { principal, holder, wants: vec![want], contention, key };
    let given = obtain(app, caller, command).await?;
    let [fence] = given.leases[..] else { return Err(unexpected()) };
    Ok((granted(app, &given.response, fence, given.stamp)?, given.undelivered))
}
