//! Whether it lives, and whether it answers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tenure_api::Code;

use super::answer::{Failure, json};
use crate::app::App;

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

/// 200 while the process lives.
pub(super) async fn alive() -> Response {
    json(StatusCode::OK, &Health { status: "alive" })
}

/// 200 only when requests will be answered.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<Response, Failure> {
    match app.why_not_ready() {
        None => Ok(json(StatusCode::OK, &Health { status: "ready" })),
        Some(reason) => Err(Failure::new(Code::Unavailable, reason)),
    }
}
