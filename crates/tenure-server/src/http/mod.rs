//! HTTP: one file per subject.

pub(crate) mod accept;
mod answer;
mod auth;
mod body;
pub(crate) mod events;
mod fields;
mod health;
mod json;
mod leases;
mod may_see;
mod origin;
mod refusal;
mod times;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use tenure_api::Code;

use self::answer::Failure;
use crate::app::App;

/// Every route.
pub(crate) fn router(app: Arc<App>) -> Router {
    let open = Router::new().route("/healthz", get(health::alive)).route("/readyz", get(health::ready));
    let guarded = leases::routes()
        .route("/v1/events", get(events::events))
        .fallback(no_such_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(app.clone(), auth::require));
    open.method_not_allowed_fallback(wrong_method)
        .merge(guarded)
        .layer(from_fn_with_state(app.clone(), origin::check))
        .with_state(app)
}

async fn no_such_route() -> Failure {
    Failure::new(Code::NotFound, "there is no such address; plain leases are under /v1/leases")
}

async fn wrong_method() -> Failure {
    Failure::new(Code::MethodNotAllowed, "the header Allow says which methods this address takes")
}
