//! Work: leases that say what their holder may do, and how much of it. One file per route.

mod claim;
mod derive;
mod keep;
mod read;
mod show;
mod spend;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use self::read::shown as amounts;
use crate::app::App;

/// The routes of work.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(claim::claim))
        .routes(routes!(derive::derive))
        .routes(routes!(spend::spend))
        .routes(routes!(keep::renew))
        .routes(routes!(keep::release))
        .routes(routes!(show::show))
}
