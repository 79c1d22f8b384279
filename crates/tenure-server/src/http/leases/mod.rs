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

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use tenure_api::Code;
use tenure_core::kernel::{Fence, Nonce, Principal, State};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use self::show::{ended, live};
use super::answer::Failure;
use super::refusal::{not_found, token_invalid};
use crate::app::App;

/// The routes of plain leases.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, acquire::acquire))
        .routes(routes!(batch::acquire_all))
        .routes(routes!(show::show))
        .routes(routes!(renew::renew))
        .routes(routes!(release::release))
        .routes(routes!(transfer::transfer))
        .routes(routes!(upgrade::upgrade))
        .routes(routes!(downgrade::downgrade))
        .routes(routes!(revoke::revoke))
        .routes(routes!(withdraw::withdraw))
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
