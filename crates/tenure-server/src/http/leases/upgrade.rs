//! `POST /v1/leases/{id}/upgrade`: a stronger mode, if nobody is in the way.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use tenure_core::kernel::{Command, Mode};

use super::LeaseId;
use super::change_mode::Asked;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::body::JsonBody;

/// Hold a lease in a stronger mode.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/upgrade",
    tag = "leases",
    operation_id = "upgrade",
    params(LeaseId),
    request_body = tenure_api::ChangeMode,
    responses((status = 200, description = "The lease that goes on, with a new id, fence and token", body = tenure_api::Granted)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "HOLDER_TAKEN", "NOT_FOUND", "HELD", "DEADLOCK", "AUTHORITY_BOUND", "EXPIRED", "QUOTA_EXCEEDED", "TTL_OUT_OF_RANGE"])))
)]
pub(super) async fn upgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: JsonBody,
) -> Result<Response, Failure> {
    let asked = Asked::read(body.fields, Mode::Exclusive)?;
    asked.change(&app, &caller, &id, "upgrade", Command::Upgrade).await
}
