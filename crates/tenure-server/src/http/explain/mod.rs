//! `GET /v1/explain`: why a resource is as it is.

mod messages;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use tenure_api::{DenialView, Explanation, Lease};
use tenure_core::kernel::{self, Resource, Tick};
use tenure_core::rules::time::is_expired;

use super::auth::Caller;
use super::leases::{active_lease, ended_lease};
use super::queue::{parse_resource_query, waiters};
use super::response::{HttpError, json};
use crate::app::App;
use crate::clock::tick_to_rfc3339;
use crate::denial_log;

/// Explain the state of a resource.
///
/// Returns holders, waiters, the last denial and the last end, as fields and in sentences.
#[utoipa::path(
    get,
    path = "/v1/explain",
    tag = "watching",
    operation_id = "explain",
    params(("resource" = String, Query, description = "Name of the resource")),
    responses((status = 200, description = "State and explanation", body = Explanation)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn explain(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, HttpError> {
    let resource = parse_resource_query(&caller, &uri)?;
    let denial = app.denials.latest(&resource);
    let now = app.registrar.now();
    let explanation = app.registrar.read(|state| {
        let last_denial = denial.map(|refused| denial_view(state, &refused, now));
        let mut explanation = Explanation {
            resource: resource.as_str().to_owned(),
            held: held(state, &resource, &caller, now),
            waiting: waiters(state, &resource, &caller, now),
            last_refusal: last_denial,
            last_end: last_end(state, &resource, now),
            words: Vec::new(),
        };
        let held_back = state
            .restore_quarantine_until(now)
            .map(|until| (tick_to_rfc3339(state, until), until.since(now)));
        explanation.words = messages::describe(&explanation, held_back);
        explanation
    });
    Ok(json(StatusCode::OK, &explanation))
}

/// Who holds it, or something that overlaps it, oldest first.
fn held(state: &kernel::KernelState, resource: &Resource, caller: &Caller, now: Tick) -> Vec<Lease> {
    let alive = state
        .leases_overlapping_resource(resource)
        .filter(|lease| !is_expired(now.0, lease.terms.expires_at.0));
    let alive = alive.filter(|lease| caller.can_see(lease.resource.as_str()));
    let mut leases: Vec<_> = alive.map(|lease| active_lease(state, lease, now)).collect();
    leases.sort_unstable_by_key(|lease| lease.fence);
    leases
}

/// The lease on it that ended last, announced or not.
fn last_end(state: &kernel::KernelState, resource: &Resource, now: Tick) -> Option<Lease> {
    let unannounced =
        state.leases_on_resource(resource).filter(|lease| is_expired(now.0, lease.terms.expires_at.0));
    if let Some(lease) = unannounced.max_by_key(|lease| (lease.terms.expires_at, lease.fence)) {
        return Some(active_lease(state, lease, now));
    }
    let announced = state.ended_leases().filter(|lease| lease.resource == *resource);
    announced.max_by_key(|lease| (lease.ended_at, lease.fence)).map(|lease| ended_lease(state, lease))
}

fn denial_view(state: &kernel::KernelState, refused: &denial_log::Denial, now: Tick) -> DenialView {
    DenialView {
        at: tick_to_rfc3339(state, refused.at),
        ago_ms: now.since(refused.at).as_millis(),
        code: refused.code,
        detail: refused.detail.clone(),
        holder: refused.holder.as_str().to_owned(),
        principal: refused.principal.as_str().to_owned(),
    }
}
