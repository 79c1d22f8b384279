//! Work: leases that say what their holder may do, and how much of it. Handlers and their requests.

mod handlers;
mod parse;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use self::parse::budget_view as amounts;
use crate::app::App;

/// The routes of work.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(handlers::claim))
        .routes(routes!(handlers::derive))
        .routes(routes!(handlers::spend))
        .routes(routes!(handlers::renew))
        .routes(routes!(handlers::release))
        .routes(routes!(handlers::show))
}
