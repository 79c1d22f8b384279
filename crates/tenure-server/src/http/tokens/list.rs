//! `GET /v1/tokens`: every token that is good, without its secret.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::Tokens;

use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::tokens::Now;

/// Every token that is good, without its secret.
#[utoipa::path(
    get,
    path = "/v1/tokens",
    tag = "tokens",
    operation_id = "tokens",
    responses((status = 200, description = "The tokens", body = tenure_api::Tokens)),
)]
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    super::must_be_unlimited(&caller)?;
    let tokens = app.given.list(Now::read()).iter().map(|token| super::shown(token)).collect();
    Ok(json(StatusCode::OK, &Tokens { tokens }))
}
