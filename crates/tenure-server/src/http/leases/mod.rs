//! Plain leases: one file per route.

mod acquire;
mod batch;
mod change_mode;
mod continued;
mod delivery;
mod downgrade;
mod granted;
mod list;
mod obtain;
mod recall;
mod release;
mod renew;
mod revoke;
mod show;
mod transfer;
mod upgrade;
mod wish;
mod withdraw;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::routing::{delete, get, post};
use tenure_core::kernel::{Fence, Nonce};

use super::answer::Failure;
use super::auth::Caller;
use super::refusal::{not_found, token_invalid};
use crate::app::App;

/// The routes of plain leases.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/leases", get(list::list).post(acquire::acquire))
        .route("/v1/leases/batch", post(batch::acquire_all))
        .route("/v1/leases/{id}", get(show::show))
        .route("/v1/leases/{id}/renew", post(renew::renew))
        .route("/v1/leases/{id}/release", post(release::release))
        .route("/v1/leases/{id}/transfer", post(transfer::transfer))
        .route("/v1/leases/{id}/upgrade", post(upgrade::upgrade))
        .route("/v1/leases/{id}/downgrade", post(downgrade::downgrade))
        .route("/v1/leases/{id}/revoke", post(revoke::revoke))
        .route("/v1/queue/{ticket}", delete(withdraw::withdraw))
}

/// The id in the address. What cannot be an id names no lease.
struct LeaseId(String);

impl<S: Send + Sync> FromRequestParts<S> for LeaseId {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(id)| Self(id)).map_err(|_| not_found())
    }
}

/// A lease that somebody named, dead or alive.
struct Named {
    fence: Fence,
    nonce: Nonce,
}

/// The lease with this id, if the caller may act on what it is on.
fn named(app: &App, caller: &Caller, id: &LeaseId) -> Result<Named, Failure> {
    app.registrar.read(|state| {
        let fence = state.tag().fence_of(&id.0).ok_or_else(not_found)?;
        let live = state.lease(fence).map(|lease| (lease.resource, lease.nonce));
        let ended = || state.ended(fence).map(|lease| (&lease.resource, lease.nonce));
        let (resource, nonce) = live.or_else(ended).ok_or_else(not_found)?;
        caller.require_resource(resource.as_str())?;
        Ok(Named { fence, nonce })
    })
}

/// The lease that `token` was given out with: whoever presents it may act on the lease, dead or alive.
fn proven(app: &App, caller: &Caller, id: &LeaseId, token: &str) -> Result<Fence, Failure> {
    let Named { fence, nonce } = named(app, caller, id)?;
    if app.tokens.is_token_of(token, &id.0, nonce) { Ok(fence) } else { Err(token_invalid()) }
}
