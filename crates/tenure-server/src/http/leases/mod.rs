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
use tenure_api::Code;
use tenure_core::kernel::{Fence, Nonce, Principal, State};

use super::answer::Failure;
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

/// The lease that `token` was given out with: whoever presents it may act on the lease, dead or alive.
fn proven(app: &App, id: &LeaseId, token: &str) -> Result<Fence, Failure> {
    let (fence, nonce) = app.registrar.read(|state| nonce_of(state, &id.0)).ok_or_else(not_found)?;
    if app.tokens.is_token_of(token, &id.0, nonce) { Ok(fence) } else { Err(token_invalid()) }
}

fn nonce_of(state: &State, id: &str) -> Option<(Fence, Nonce)> {
    let fence = state.tag().fence_of(id)?;
    let nonce = state.lease(fence).map(|lease| lease.nonce);
    Some((fence, nonce.or_else(|| state.ended(fence).map(|lease| lease.nonce))?))
}

/// Whether this principal may act on what is others'.
fn is_admin(principal: &Principal) -> bool {
    principal.as_str() == "admin"
}

fn require_admin(principal: &Principal) -> Result<(), Failure> {
    if is_admin(principal) {
        return Ok(());
    }
    Err(Failure::new(Code::Forbidden, "only an administrator may do this; use a token with the scope admin"))
}
