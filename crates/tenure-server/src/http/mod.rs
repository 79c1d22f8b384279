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

/// Every route. `auth` has the table of what each needs; a route that is not in it cannot be reached.
pub(crate) fn router(app: Arc<App>) -> Router {
    routes()
        .fallback(async || no_such_route())
        .layer(from_fn_with_state(app.clone(), auth::require))
        .layer(from_fn_with_state(app.clone(), origin::check))
        .with_state(app)
}

fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/v1/events", get(events::events))
        .merge(leases::routes())
}

fn no_such_route() -> Failure {
    Failure::new(Code::NotFound, "there is no such address; plain leases are under /v1/leases")
}
