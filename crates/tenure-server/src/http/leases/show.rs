//! `GET /v1/leases/{id}`, and how every lease is shown.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Lease, LeaseState, OneLease};
use tenure_core::kernel::{self, End, EndedLease, Fence, LeaseView, Tick};
use tenure_core::rules::time::{is_over, remaining};

use super::end::Recalls;
use super::{LeaseId, Named, named};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::names::time_of;
use crate::http::refusal::{end_name, not_found};

/// One lease, dead or alive.
#[utoipa::path(
    get,
    path = "/v1/leases/{id}",
    tag = "leases",
    operation_id = "show",
    params(LeaseId),
    responses((status = 200, description = "The lease", body = tenure_api::OneLease)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
) -> Result<Response, Failure> {
    let Named { fence, .. } = named(&app, &caller, &id)?;
    let now = app.registrar.now();
    let found = app.registrar.read(|state| find(state, fence, now));
    Ok(json(StatusCode::OK, &OneLease { lease: found.ok_or_else(not_found)? }))
}

/// The lease with this number, dead or alive, as it is at `at`.
pub(in crate::http) fn find(state: &kernel::State, fence: Fence, at: Tick) -> Option<Lease> {
    let live = state.lease(fence).map(|lease| live(state, lease, at));
    live.or_else(|| state.ended(fence).map(|lease| ended(state, lease)))
}

/// A lease that nobody has announced to be over. It may be all the same.
pub(in crate::http) fn live(state: &kernel::State, lease: LeaseView<'_>, at: Tick) -> Lease {
    live_among(state, lease, at, &mut Recalls::new(state, at))
}

/// The same, where there are many.
pub(super) fn live_among<'a>(
    state: &'a kernel::State,
    lease: LeaseView<'a>,
    at: Tick,
    recalls: &mut Recalls<'a>,
) -> Lease {
    let shown = as_active(state, &lease, at);
    if is_over(at.0, lease.terms.expires_at.0) {
        over(shown, End::Expired, time_of(state, lease.terms.expires_at))
    } else {
        Lease { recall: recalls.of(&lease), ..shown }
    }
}

fn as_active(state: &kernel::State, lease: &LeaseView<'_>, at: Tick) -> Lease {
    Lease {
        id: state.tag().lease_id(lease.fence),
        resource: lease.resource.as_str().to_owned(),
        holder: lease.holder.as_str().to_owned(),
        mode: lease.terms.mode.as_str().to_owned(),
        state: LeaseState::Active,
        fence: lease.fence.0,
        ttl_ms: lease.terms.ttl.as_millis(),
        remaining_ms: remaining(at.0, lease.terms.expires_at.0) / 1_000,
        acquired_at: time_of(state, lease.terms.issued_at),
        expires_at: time_of(state, lease.terms.expires_at),
        renewal_count: lease.terms.renewals,
        labels: lease.terms.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ended_at: None,
        end: None,
        recall: None,
    }
}

/// A lease that is over.
pub(in crate::http) fn ended(state: &kernel::State, lease: &EndedLease) -> Lease {
    let as_it_was = LeaseView {
        fence: lease.fence,
        resource: &lease.resource,
        holder: &lease.holder,
        principal: &lease.principal,
        terms: &lease.terms,
        // It is not shown.
        has_key: false,
        work: None,
    };
    over(as_active(state, &as_it_was, lease.ended_at), lease.end, time_of(state, lease.ended_at))
}

/// The state of a lease that ended in this way.
pub(super) fn state_after(end: End) -> LeaseState {
    match end {
        End::Expired => LeaseState::Expired,
        End::Released(_) | End::Revoked(_) => LeaseState::Released,
    }
}

fn over(lease: Lease, end: End, ended_at: String) -> Lease {
    Lease {
        state: state_after(end),
        remaining_ms: 0,
        ended_at: Some(ended_at),
        end: Some(end_name(end).to_owned()),
        ..lease
    }
}
