//! `GET /v1/leases`: which leases there are, in parts, in the order of their fences.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use tenure_api::{Lease, LeasePage, LeaseState};
use tenure_core::kernel::{self, EndedLease, Fence, Holder, LeaseView, LedgerTag, Resource, Tick};
use tenure_core::rules::is_expired;

use super::release_and_revoke::RecallLookup;
use super::show::{active_lease_with_recalls, ended_lease, state_after};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::parse_query;
use crate::http::response::{HttpError, json};

const MAX_LIMIT: usize = 1_000;
const DEFAULT_LIMIT: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LeasesQuery {
    resource: Option<String>,
    holder: Option<String>,
    state: Option<LeaseState>,
    limit: Option<usize>,
    after: Option<String>,
}

/// Which leases are asked for.
struct Filter {
    resource: Option<Resource>,
    holder: Option<Holder>,
    state: LeaseState,
    limit: usize,
    after: Fence,
    /// Who asks: what it may not see is not there.
    caller: Caller,
}

/// List leases.
///
/// Returns pages in fence order.
#[utoipa::path(
    get,
    path = "/v1/leases",
    tag = "leases",
    operation_id = "list",
    params(
        ("resource" = Option<String>, Query, description = "Resource of the leases"),
        ("holder" = Option<String>, Query, description = "Holder of the leases"),
        ("state" = Option<LeaseState>, Query, description = "State of the leases, `ACTIVE` by default"),
        ("limit" = Option<usize>, Query, description = "Maximum number of leases, 1 to 1000, default 100", minimum = 1, maximum = 1_000),
        ("after" = Option<String>, Query, description = "Cursor: `next` of the previous page"),
    ),
    responses((status = 200, description = "Page of leases", body = tenure_api::LeasePage)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, HttpError> {
    let query: LeasesQuery = parse_query(&uri)?;
    let filter = Filter::new(query, caller, app.registrar.read(kernel::KernelState::ledger_tag))?;
    let now = app.registrar.now();
    let page = app.registrar.read(|state| page(state, &filter, now));
    Ok(json(StatusCode::OK, &page))
}

impl Filter {
    fn new(query: LeasesQuery, caller: Caller, tag: LedgerTag) -> Result<Self, HttpError> {
        query.resource.iter().try_for_each(|resource| caller.require_resource(resource))?;
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(HttpError::invalid("limit", &format!("must be from 1 to {MAX_LIMIT}")));
        }
        let unknown = || HttpError::invalid("after", "must be the `next` of an earlier page of this server");
        let after = query.after.map(|cursor| parse_cursor(&cursor, tag).ok_or_else(unknown)).transpose()?;
        Ok(Self {
            resource: query.resource.as_deref().map(Resource::parse).transpose()?,
            holder: query.holder.as_deref().map(Holder::parse).transpose()?,
            state: query.state.unwrap_or_default(),
            limit,
            after: after.unwrap_or_default(),
            caller,
        })
    }

    fn fits(&self, fence: Fence, resource: &Resource, holder: &Holder) -> bool {
        fence > self.after
            && self.resource.as_ref().is_none_or(|state| state == resource)
            && self.holder.as_ref().is_none_or(|expected| expected == holder)
            && self.caller.can_see(resource.as_str())
    }

    fn fits_ended(&self, lease: &EndedLease) -> bool {
        self.fits(lease.fence, &lease.resource, &lease.holder) && state_after(lease.end) == self.state
    }
}

fn page(state: &kernel::KernelState, filter: &Filter, now: Tick) -> LeasePage {
    // One more than is shown, to know whether anything follows.
    let max_leases = filter.limit + 1;
    let mut leases = match filter.state {
        LeaseState::Active => current_leases(state, filter, now, false, max_leases),
        LeaseState::Released => remembered(state, filter, max_leases),
        LeaseState::Expired => {
            let mut leases = remembered(state, filter, max_leases);
            // What is over is over, announced or not. Mostly nothing is, and then nobody looks for it.
            if state.next_deadline().is_some_and(|deadline| is_expired(now.0, deadline.0)) {
                leases.extend(current_leases(state, filter, now, true, max_leases));
                leases.sort_unstable_by_key(|lease| lease.fence);
            }
            leases
        }
    };
    let follows = leases.len() > filter.limit;
    leases.truncate(filter.limit);
    let next = leases.last().filter(|_| follows).map(|lease| URL_SAFE_NO_PAD.encode(&lease.id));
    LeasePage { leases, next }
}

/// The first leases that fit and are not announced to be over: those that live, or those that are over all the same.
fn current_leases(
    state: &kernel::KernelState,
    filter: &Filter,
    now: Tick,
    expired: bool,
    limit: usize,
) -> Vec<Lease> {
    let fits = |lease: &LeaseView<'_>| {
        filter.fits(lease.fence, lease.resource, lease.holder)
            && is_expired(now.0, lease.terms.expires_at.0) == expired
    };
    let mut found: Vec<_> = match (&filter.resource, &filter.holder) {
        (Some(resource), _) => state.leases_on_resource(resource).filter(fits).collect(),
        (None, Some(holder)) => state.leases_of_holder(holder).filter(fits).collect(),
        (None, None) => state.leases_from(filter.after).filter(fits).take(limit).collect(),
    };
    found.sort_unstable_by_key(|lease| lease.fence);
    let mut recalls = RecallLookup::new(state, now);
    found
        .into_iter()
        .take(limit)
        .map(|lease| active_lease_with_recalls(state, lease, now, &mut recalls))
        .collect()
}

/// The first leases that fit, of those that ended not long ago.
fn remembered(state: &kernel::KernelState, filter: &Filter, limit: usize) -> Vec<Lease> {
    let found = state.ended_leases().filter(|lease| filter.fits_ended(lease));
    found.take(limit).map(|lease| ended_lease(state, lease)).collect()
}

fn parse_cursor(cursor: &str, tag: LedgerTag) -> Option<Fence> {
    let id = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    tag.fence_of(&id)
}

#[cfg(test)]
mod tests {
    use tenure_core::kernel::{
        Acquire, Command, ContentionPolicy, Labels, LeaseMode, LeaseRequest, Nonce, Principal, TickDuration,
        decide,
    };

    use super::*;

    /// A state in which `a` holds this for a second from tick 0.
    fn held() -> kernel::KernelState {
        let mut state = kernel::KernelState::default();
        let request = LeaseRequest {
            resource: Resource::parse("db:1").unwrap(),
            alternatives: Default::default(),
            mode: LeaseMode::Exclusive,
            ttl: TickDuration::from_secs(1),
            nonce: Nonce::default(),
            labels: Labels::default(),
        };
        let acquire = Command::Acquire(Acquire {
            principal: Principal::parse("admin").unwrap(),
            holder: Holder::parse("a").unwrap(),
            requests: vec![request],
            contention_policy: ContentionPolicy::Deny,
            key: None,
        });
        for event in decide(&state, &acquire, Tick(0)).events {
            state.apply(&event).unwrap();
        }
        state
    }

    fn fences(state: &kernel::KernelState, lease_state: LeaseState, now: Tick) -> Vec<u64> {
        let (after, caller) = (Fence::default(), Caller::admin(Principal::parse("admin").unwrap()));
        let filter = Filter { resource: None, holder: None, state: lease_state, limit: 10, after, caller };
        page(state, &filter, now).leases.iter().map(|lease| lease.fence).collect()
    }

    #[test]
    fn an_expired_lease_is_listed_as_expired_before_the_sweep() {
        let (state, end) = (held(), Tick(1_000_000));
        assert_eq!(fences(&state, LeaseState::Active, Tick(end.0 - 1)), [1]);
        assert_eq!(fences(&state, LeaseState::Expired, Tick(end.0 - 1)), [0; 0]);
        assert_eq!(fences(&state, LeaseState::Active, end), [0; 0]);
        assert_eq!(fences(&state, LeaseState::Expired, end), [1]);
    }
}
