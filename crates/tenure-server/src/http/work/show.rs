//! `GET /v1/work/{lease_id}`, and how authority is shown.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{OneWork, Scope, Work};
use tenure_core::authority::{LeaseScope, work_id_of};
use tenure_core::kernel::{self, Fence};

use super::read::shown;
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::leases::{LeaseId, fence_named, find};
use crate::http::refusal::{no_authority, not_found};

/// One lease on work, dead or alive: what it allows, what was used up, and what is left.
#[utoipa::path(
    get,
    path = "/v1/work/{lease_id}",
    tag = "work",
    operation_id = "showWork",
    params(("lease_id" = String, Path, description = "The lease, as `lease.id` named it")),
    responses((status = 200, description = "The lease and what it allows", body = tenure_api::OneWork)),
    extensions(("x-codes" = json!(["NOT_FOUND", "NO_AUTHORITY"])))
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
) -> Result<Response, Failure> {
    let fence = fence_named(&app, &caller, &id)?;
    let now = app.registrar.now();
    let found = app.registrar.read(|state| Some((find(state, fence, now)?, work_of(state, fence))));
    let (lease, work) = found.ok_or_else(not_found)?;
    Ok(json(StatusCode::OK, &OneWork { lease, work: work.ok_or_else(no_authority)? }))
}

/// What a lease allows, dead or alive; nothing for a lease that has no authority.
pub(super) fn work_of(state: &kernel::State, fence: Fence) -> Option<Work> {
    let ended = state.ended(fence);
    let live = state.lease(fence).and_then(|lease| Some((lease.resource, lease.work?)));
    let (resource, work) = live.or_else(|| Some((&ended?.resource, ended?.work.as_deref()?)))?;
    let id = |fence: &Fence| state.tag().lease_id(*fence);
    Some(Work {
        work_id: work_id_of(resource)?.to_owned(),
        scope: scope_of(&work.authority.scope),
        budget: shown(work.authority.budget),
        spent: shown(work.spent),
        given: shown(work.given),
        remaining: shown(work.left),
        exhausted: work.left.is_exhausted(),
        parent: work.authority.parent.as_ref().map(id),
        children: work.children.iter().map(id).collect(),
    })
}

fn scope_of(scope: &LeaseScope) -> Option<Scope> {
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let [work_ids, tools, namespaces] = scope.names()?.map(owned);
    Some(Scope { work_ids, tools, namespaces })
}
