//! Routes of plain leases.

mod acquire;
mod acquire_or_wait;
mod list;
mod parse;
pub(crate) mod queue;
mod reissue;
mod release_and_revoke;
pub(crate) mod resource_pools;
mod show;

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use tenure_core::kernel::{Fence, Nonce};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::acquire::{acquire_one, granted, revoke_unless_delivered};
pub(crate) use self::parse::nonce;
pub(crate) use self::parse::{derive_idempotency_key, holder, parse_idempotency_key};
pub(crate) use self::release_and_revoke::{release_one, renew_one};
pub(crate) use self::show::{active_lease, active_view, ended_lease, ended_view, find};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::response::{HttpError, not_found, token_invalid};

/// The routes of plain leases.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, acquire::acquire))
        .routes(routes!(acquire::acquire_all))
        .routes(routes!(show::show))
        .routes(routes!(release_and_revoke::renew))
        .routes(routes!(release_and_revoke::release))
        .routes(routes!(reissue::transfer))
        .routes(routes!(reissue::upgrade))
        .routes(routes!(reissue::downgrade))
        .routes(routes!(release_and_revoke::revoke))
        .routes(routes!(acquire_or_wait::withdraw))
}

/// The id in the address. What cannot be an id names no lease.
#[derive(IntoParams)]
#[into_params(names("id"), parameter_in = Path)]
pub(super) struct LeaseId(
    /// Lease id, as returned in `lease.id`
    pub(super) String,
);

impl<S: Send + Sync> FromRequestParts<S> for LeaseId {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(id)| Self(id)).map_err(|_| not_found())
    }
}

/// A lease that somebody named, dead or alive.
struct LeaseReference {
    fence: Fence,
    nonce: Nonce,
}

/// The lease with this id, if the caller may act on what it is on.
fn named(app: &App, caller: &Caller, id: &LeaseId) -> Result<LeaseReference, HttpError> {
    app.registrar.read(|state| {
        let fence = state.ledger_tag().fence_of(&id.0).ok_or_else(not_found)?;
        let live = state.lease(fence).map(|lease| (lease.resource, lease.terms.nonce));
        let ended = || state.ended_lease(fence).map(|lease| (&lease.resource, lease.terms.nonce));
        let (resource, nonce) = live.or_else(ended).ok_or_else(not_found)?;
        caller.require_resource(resource.as_str())?;
        Ok(LeaseReference { fence, nonce })
    })
}

/// The number of the lease with this id, if the caller may see what it is on.
pub(super) fn fence_of_lease_id(app: &App, caller: &Caller, id: &LeaseId) -> Result<Fence, HttpError> {
    named(app, caller, id).map(|named| named.fence)
}

/// The lease that `token` was given out with: whoever presents it may act on the lease, dead or alive.
pub(super) fn verify_token(
    app: &App,
    caller: &Caller,
    id: &LeaseId,
    token: &str,
) -> Result<Fence, HttpError> {
    let LeaseReference { fence, nonce } = named(app, caller, id)?;
    if app.token_key.is_token_of(token, &id.0, nonce) { Ok(fence) } else { Err(token_invalid()) }
}
