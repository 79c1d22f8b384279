//! `GET /v1/resource/{id}/state`: who has a resource, or part of it, and who waits.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::ResourceState;
use tenure_core::kernel::Resource;
use tenure_core::rules::overlap::overlap;
use tenure_core::rules::time::is_over;

use super::{names, view};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;

/// Who has a resource, or something that overlaps it, and who waits for it.
#[utoipa::path(
    get,
    path = "/v1/resource/{id}/state",
    tag = "agents",
    operation_id = "resourceState",
    params(("id" = String, Path, description = "The resource, such as `FILE:src/lib.rs`; a `/` in it is written as `%2F`")),
    responses((status = 200, description = "How it stands with it", body = ResourceState)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn resource(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    let Path(id) = path.map_err(|_| Failure::invalid("id", "must be text in UTF-8"))?;
    let resource = names::any_resource("id", &id)?;
    caller.require_resource(resource.as_str())?;
    let now = app.registrar.now();
    let (leases, waiting) = app.registrar.read(|state| {
        let around =
            state.leases_around_resource(&resource).filter(|lease| !is_over(now.0, lease.expires_at.0));
        let seen = around.filter(|lease| caller.may_see(lease.resource.as_str()));
        let mut leases: Vec<_> = seen.map(|lease| view::living(state, &lease, now)).collect();
        leases.sort_unstable_by_key(|lease| lease.fence);
        let is_meant =
            |name: &Resource| caller.may_see(name.as_str()) && overlap(name.as_str(), resource.as_str());
        let agents = state.pending().filter(|pending| !is_over(now.0, pending.until.0));
        let agents = agents.filter(|pending| pending.wants.iter().any(|want| is_meant(&want.resource)));
        let agents = agents.map(|pending| pending.rank.agent.as_str().to_owned());
        let others = state.tickets().filter(|ticket| !is_over(now.0, ticket.until.0));
        let others =
            others.filter(|ticket| ticket.wants.iter().flat_map(|want| want.resources()).any(is_meant));
        let others = others.map(|ticket| ticket.holder.as_str().to_owned());
        (leases, agents.chain(others).collect())
    });
    let held = !leases.is_empty();
    Ok(json(StatusCode::OK, &ResourceState { resource: resource.as_str().to_owned(), held, leases, waiting }))
}
