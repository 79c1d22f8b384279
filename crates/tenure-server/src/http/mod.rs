//! HTTP for all APIs: routes, authentication, strict bodies, responses, OpenAPI.

pub(crate) mod auth;
pub(crate) mod body;
mod metrics;
mod openapi;
pub mod origin;
pub(crate) mod response;
pub(crate) mod websocket;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tenure_api::Code;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::origin::HostNames;
use self::response::HttpError;
use crate::app::App;
use crate::{agents, control, events, explain, files, intents, leases, stream, tokens, work};

/// Every route. `auth` has the table of what each needs; a route that is not in it cannot be reached.
pub(crate) fn router(app: Arc<App>) -> Router {
    routes()
        .fallback(control::fallback)
        .layer(from_fn_with_state(app.clone(), auth::require_permission))
        .layer(from_fn_with_state(app.clone(), intents::lan_only))
        .layer(from_fn_with_state(app.clone(), origin::check_host_and_origin))
        .layer(from_fn_with_state(app.clone(), metrics::count))
        .with_state(app)
}

fn routes() -> Router<Arc<App>> {
    documented_routes().split_for_parts().0
}

/// Every route with what is said of it. One without a description is not part of the interface.
fn documented_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .merge(leases::routes())
        .merge(work::routes())
        .merge(tokens::routes())
        .routes(routes!(leases::queue::queue))
        .routes(routes!(explain::explain))
        .routes(routes!(events::events))
        .routes(routes!(stream::stream))
        .merge(agents::routes())
        .merge(files::routes())
        .merge(intents::routes())
        .merge(control::routes())
        .routes(routes!(metrics::alive))
        .routes(routes!(metrics::ready))
        .routes(routes!(metrics::metrics))
        .routes(routes!(openapi::openapi))
}

pub(crate) fn no_such_route() -> HttpError {
    HttpError::new(Code::NotFound, "there is no such address; plain leases are under /v1/leases")
}
