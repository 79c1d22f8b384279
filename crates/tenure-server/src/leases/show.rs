//! `GET /v1/leases/{id}`, and how every lease is shown.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Lease, LeaseResponse, LeaseState};
use tenure_core::kernel::{self, EndedLease, Fence, LeaseEnd, LeaseTerms, LeaseView, Tick};
use tenure_core::rules::{is_expired, remaining};

use super::release_and_revoke::RecallLookup;
use super::{LeaseId, LeaseReference, named};
use crate::app::{App, tick_to_rfc3339};
use crate::http::auth::Caller;
use crate::http::response::{HttpError, end_reason_name, json, not_found};

/// Get an active or recently ended lease.
#[utoipa::path(
    get,
    path = "/v1/leases/{id}",
    tag = "leases",
    operation_id = "show",
    params(LeaseId),
    responses((status = 200, description = "State of the lease", body = tenure_api::LeaseResponse)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
) -> Result<Response, HttpError> {
    let LeaseReference { fence, .. } = named(&app, &caller, &id)?;
    let now = app.registrar.now();
    let found = app.registrar.read(|state| find(state, fence, now));
    Ok(json(StatusCode::OK, &LeaseResponse { lease: found.ok_or_else(not_found)? }))
}

/// The lease with this number, dead or alive, as it is at `at`.
pub(crate) fn find(state: &kernel::KernelState, fence: Fence, at: Tick) -> Option<Lease> {
    let live = state.lease(fence).map(|lease| active_lease(state, lease, at));
    live.or_else(|| state.ended_lease(fence).map(|lease| ended_lease(state, lease)))
}

/// A lease that nobody has announced to be over. It may be all the same.
pub(crate) fn active_lease(state: &kernel::KernelState, lease: LeaseView<'_>, at: Tick) -> Lease {
    active_lease_with_recalls(state, lease, at, &mut RecallLookup::new(state, at))
}

/// The same, where there are many.
pub(super) fn active_lease_with_recalls<'a>(
    state: &'a kernel::KernelState,
    lease: LeaseView<'a>,
    at: Tick,
    recalls: &mut RecallLookup<'a>,
) -> Lease {
    let shown = as_active(state, &lease, at);
    if is_expired(at.0, lease.terms.expires_at.0) {
        ended_view(shown, LeaseEnd::Expired, tick_to_rfc3339(state, lease.terms.expires_at))
    } else {
        Lease { recall: recalls.of(&lease), ..shown }
    }
}

fn as_active(state: &kernel::KernelState, lease: &LeaseView<'_>, at: Tick) -> Lease {
    let names = (lease.resource.as_str(), lease.holder.as_str());
    let id = state.ledger_tag().lease_id(lease.fence);
    active_view(id, lease.fence, names, lease.terms, at, |tick| tick_to_rfc3339(state, tick))
}

/// A lease on a resource, of a holder, before its end. `time` gives a tick as text.
pub(crate) fn active_view(
    id: String,
    fence: Fence,
    (resource, holder): (&str, &str),
    terms: &LeaseTerms,
    at: Tick,
    time: impl Fn(Tick) -> String,
) -> Lease {
    Lease {
        id,
        resource: resource.to_owned(),
        holder: holder.to_owned(),
        mode: terms.mode.as_str().to_owned(),
        state: LeaseState::Active,
        fence: fence.0,
        ttl_ms: terms.ttl.as_millis(),
        remaining_ms: remaining(at.0, terms.expires_at.0) / 1_000,
        acquired_at: time(terms.issued_at),
        expires_at: time(terms.expires_at),
        renewal_count: terms.renewals,
        labels: terms.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ended_at: None,
        end: None,
        recall: None,
    }
}

/// A lease that is over.
pub(crate) fn ended_lease(state: &kernel::KernelState, lease: &EndedLease) -> Lease {
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
    ended_view(
        as_active(state, &as_it_was, lease.ended_at),
        lease.end,
        tick_to_rfc3339(state, lease.ended_at),
    )
}

/// The state of a lease that ended in this way.
pub(super) fn state_after(end: LeaseEnd) -> LeaseState {
    match end {
        LeaseEnd::Expired => LeaseState::Expired,
        LeaseEnd::Released(_) | LeaseEnd::Revoked(_) => LeaseState::Released,
    }
}

pub(crate) fn ended_view(lease: Lease, end: LeaseEnd, ended_at: String) -> Lease {
    Lease {
        state: state_after(end),
        remaining_ms: 0,
        ended_at: Some(ended_at),
        end: Some(end_reason_name(end).to_owned()),
        ..lease
    }
}
