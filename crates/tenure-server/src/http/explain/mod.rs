//! `GET /v1/explain`: why a resource is as it is.

mod words;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use tenure_api::{Explanation, Lease, Refused};
use tenure_core::kernel::{self, Resource, Tick};
use tenure_core::rules::time::is_over;

use super::answer::{Failure, json};
use super::auth::Caller;
use super::leases::{ended, live};
use super::names::time_of;
use super::queue::{asked_about, waiting};
use crate::app::App;
use crate::refusals;

/// Why a resource is as it is.
///
/// Who holds it, who waits, what would free it, and why the last request was refused: in fields for programs, and in whole
/// sentences for people.
#[utoipa::path(
    get,
    path = "/v1/explain",
    tag = "watching",
    operation_id = "explain",
    params(("resource" = String, Query, description = "Which one")),
    responses((status = 200, description = "The explanation", body = Explanation)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn explain(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Failure> {
    let resource = asked_about(&caller, &uri)?;
    let refused = app.refusals.last(&resource);
    let now = app.registrar.now();
    let explanation = app.registrar.read(|state| {
        let last_refusal = refused.map(|refused| shown(state, &refused, now));
        let mut explanation = Explanation {
            resource: resource.as_str().to_owned(),
            held: held(state, &resource, &caller, now),
            waiting: waiting(state, &resource, &caller, now),
            last_refusal,
            last_end: last_end(state, &resource, now),
            words: Vec::new(),
        };
        let held_back = state.held_back_until(now).map(|until| (time_of(state, until), until.since(now)));
        explanation.words = words::about(&explanation, held_back);
        explanation
    });
    Ok(json(StatusCode::OK, &explanation))
}

/// Who holds it, or something that overlaps it, oldest first.
fn held(state: &kernel::State, resource: &Resource, caller: &Caller, now: Tick) -> Vec<Lease> {
    let alive =
        state.leases_around_resource(resource).filter(|lease| !is_over(now.0, lease.terms.expires_at.0));
    let alive = alive.filter(|lease| caller.may_see(lease.resource.as_str()));
    let mut leases: Vec<_> = alive.map(|lease| live(state, lease, now)).collect();
    leases.sort_unstable_by_key(|lease| lease.fence);
    leases
}

/// The lease on it that ended last, announced or not.
fn last_end(state: &kernel::State, resource: &Resource, now: Tick) -> Option<Lease> {
    let unannounced =
        state.leases_on_resource(resource).filter(|lease| is_over(now.0, lease.terms.expires_at.0));
    if let Some(lease) = unannounced.max_by_key(|lease| (lease.terms.expires_at, lease.fence)) {
        return Some(live(state, lease, now));
    }
    let announced = state.ended_leases().filter(|lease| lease.resource == *resource);
    announced.max_by_key(|lease| (lease.ended_at, lease.fence)).map(|lease| ended(state, lease))
}

fn shown(state: &kernel::State, refused: &refusals::Refused, now: Tick) -> Refused {
    Refused {
        at: time_of(state, refused.at),
        ago_ms: now.since(refused.at).as_millis(),
        code: refused.code,
        detail: refused.detail.clone(),
        holder: refused.holder.as_str().to_owned(),
        principal: refused.principal.as_str().to_owned(),
    }
}
