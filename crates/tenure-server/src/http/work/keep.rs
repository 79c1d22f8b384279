//! `POST /v1/work/renew` and `/v1/work/release`: as for any lease, which the body names.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::leases::{LeaseId, release_one, renew_one};

/// Renew a lease on work.
///
/// One that was derived is not renewed beyond the end of the lease that it was derived from.
#[utoipa::path(
    post,
    path = "/v1/work/renew",
    tag = "work",
    operation_id = "renewWork",
    request_body = tenure_api::RenewWork,
    responses((status = 200, description = "It lives on", body = tenure_api::Renewed)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "TOKEN_INVALID", "NOT_FOUND", "OUTLIVES_PARENT", "EXPIRED"])))
)]
pub(super) async fn renew(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, Failure> {
    let mut fields = body.fields;
    let id = LeaseId(fields.text("lease_id")?);
    Ok(json(StatusCode::OK, &renew_one(&app, &caller, &id, fields).await?))
}

/// Give a lease on work back, and with it whatever was derived from it.
#[utoipa::path(
    post,
    path = "/v1/work/release",
    tag = "work",
    operation_id = "releaseWork",
    request_body = tenure_api::ReleaseWork,
    responses((status = 200, description = "It is over", body = tenure_api::OneLease)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "NOT_FOUND"])))
)]
pub(super) async fn release(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, Failure> {
    let mut fields = body.fields;
    let id = LeaseId(fields.text("lease_id")?);
    Ok(json(StatusCode::OK, &release_one(&app, &caller, &id, fields).await?))
}
