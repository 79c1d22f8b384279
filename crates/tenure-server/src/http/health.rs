//! Whether it lives, and whether it answers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tenure_api::Code;
use utoipa::ToSchema;

use super::response::{HttpError, json};
use crate::app::App;

/// The health of the server.
#[derive(Serialize, ToSchema)]
struct Health {
    /// Health: `alive` or `ready`.
    status: &'static str,
}

/// Check that the process is running.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "service",
    operation_id = "alive",
    responses((status = 200, description = "Process is running", body = Health)),
)]
pub(super) async fn alive() -> Response {
    json(StatusCode::OK, &Health { status: "alive" })
}

/// Check that the server is ready.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "service",
    operation_id = "ready",
    responses((status = 200, description = "Server is ready", body = Health)),
    extensions(("x-codes" = json!(["UNAVAILABLE"])))
)]
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<Response, HttpError> {
    match app.not_ready_reason() {
        None => Ok(json(StatusCode::OK, &Health { status: "ready" })),
        Some(reason) => Err(HttpError::new(Code::Unavailable, reason)),
    }
}
