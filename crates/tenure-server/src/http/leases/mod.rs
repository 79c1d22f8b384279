//! Plain leases: one file per route.

mod acquire;
mod list;
mod release;
mod renew;
mod show;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::routing::{get, post};
use tenure_core::kernel::{Fence, Nonce, State};

use super::answer::Failure;
use super::refusal::{not_found, token_invalid};
use crate::app::App;

/// The routes of plain leases.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/leases", get(list::list).post(acquire::acquire))
        .route("/v1/leases/{id}", get(show::show))
        .route("/v1/leases/{id}/renew", post(renew::renew))
        .route("/v1/leases/{id}/release", post(release::release))
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
