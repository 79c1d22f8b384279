//! `GET /v1/leases`: which leases there are, in parts, in the order of their fences.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use tenure_api::{Lease, LeaseState, Page};
use tenure_core::kernel::{self, EndedLease, Fence, Holder, LeaseView, LedgerTag, Resource, Tick};
use tenure_core::rules::time::is_over;

use super::end::Recalls;
use super::show::{ended, live_among, state_after};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::fields::query;

const MOST: usize = 1_000;
const USUAL: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
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

/// Which leases there are, in parts, in the order of their fences.
#[utoipa::path(
    get,
    path = "/v1/leases",
    tag = "leases",
    operation_id = "list",
    params(
        ("resource" = Option<String>, Query, description = "Only on this resource"),
        ("holder" = Option<String>, Query, description = "Only of this holder"),
        ("state" = Option<LeaseState>, Query, description = "`ACTIVE` is what is meant by nothing"),
        ("limit" = Option<usize>, Query, description = "So many at the most", minimum = 1, maximum = 1_000),
        ("after" = Option<String>, Query, description = "The `next` of the part before"),
    ),
    responses((status = 200, description = "A part of the list", body = tenure_api::Page)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Failure> {
    let asked: Asked = query(&uri)?;
    let filter = Filter::new(asked, caller, app.registrar.read(kernel::State::tag))?;
    let now = app.registrar.now();
    let page = app.registrar.read(|state| page(state, &filter, now));
    Ok(json(StatusCode::OK, &page))
}

impl Filter {
    fn new(asked: Asked, caller: Caller, tag: LedgerTag) -> Result<Self, Failure> {
        asked.resource.iter().try_for_each(|resource| caller.require_resource(resource))?;
        let limit = asked.limit.unwrap_or(USUAL);
        if !(1..=MOST).contains(&limit) {
            return Err(Failure::invalid("limit", &format!("must be from 1 to {MOST}")));
        }
        let unknown = || Failure::invalid("after", "must be the `next` of an earlier page of this server");
        let after = asked.after.map(|cursor| place_of(&cursor, tag).ok_or_else(unknown)).transpose()?;
        Ok(Self {
            resource: asked.resource.as_deref().map(Resource::parse).transpose()?,
            holder: asked.holder.as_deref().map(Holder::parse).transpose()?,
            state: asked.state.unwrap_or_default(),
            limit,
            after: after.unwrap_or_default(),
            caller,
        })
    }

    fn fits(&self, fence: Fence, resource: &Resource, holder: &Holder) -> bool {
        fence > self.after
            && self.resource.as_ref().is_none_or(|wanted| wanted == resource)
            && self.holder.as_ref().is_none_or(|wanted| wanted == holder)
            && self.caller.may_see(resource.as_str())
    }

    fn fits_ended(&self, lease: &EndedLease) -> bool {
        self.fits(lease.fence, &lease.resource, &lease.holder) && state_after(lease.end) == self.state
    }
}

fn page(state: &kernel::State, filter: &Filter, now: Tick) -> Page {
    // One more than is shown, to know whether anything follows.
    let most = filter.limit + 1;
    let mut leases = match filter.state {
        LeaseState::Active => unannounced(state, filter, now, false, most),
        LeaseState::Released => remembered(state, filter, most),
        LeaseState::Expired => {
            let mut leases = remembered(state, filter, most);
            // What is over is over, announced or not. Mostly nothing is, and then nobody looks for it.
            if state.next_deadline().is_some_and(|deadline| is_over(now.0, deadline.0)) {
                leases.extend(unannounced(state, filter, now, true, most));
                leases.sort_unstable_by_key(|lease| lease.fence);
            }
            leases
        }
    };
    let follows = leases.len() > filter.limit;
    leases.truncate(filter.limit);
    let next = leases.last().filter(|_| follows).map(|lease| URL_SAFE_NO_PAD.encode(&lease.id));
    Page { leases, next }
}

/// The first leases that fit and are not announced to be over: those that live, or those that are over all the same.
fn unannounced(state: &kernel::State, filter: &Filter, now: Tick, over: bool, most: usize) -> Vec<Lease> {
    let fits = |lease: &LeaseView<'_>| {
        filter.fits(lease.fence, lease.resource, lease.holder)
            && is_over(now.0, lease.terms.expires_at.0) == over
    };
    let mut found: Vec<_> = match (&filter.resource, &filter.holder) {
        (Some(resource), _) => state.leases_on_resource(resource).filter(fits).collect(),
        (None, Some(holder)) => state.leases_of_holder(holder).filter(fits).collect(),
        (None, None) => state.leases_from(filter.after).filter(fits).take(most).collect(),
    };
    found.sort_unstable_by_key(|lease| lease.fence);
    let mut recalls = Recalls::new(state, now);
    found.into_iter().take(most).map(|lease| live_among(state, lease, now, &mut recalls)).collect()
}

/// The first leases that fit, of those that ended not long ago.
fn remembered(state: &kernel::State, filter: &Filter, most: usize) -> Vec<Lease> {
    let found = state.ended_leases().filter(|lease| filter.fits_ended(lease));
    found.take(most).map(|lease| ended(state, lease)).collect()
}

fn place_of(cursor: &str, tag: LedgerTag) -> Option<Fence> {
    let id = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    tag.fence_of(&id)
}

#[cfg(test)]
mod tests {
    use tenure_core::kernel::{
        Acquire, Command, Contention, Labels, Mode, Nonce, Principal, Span, Want, decide,
    };

    use super::*;

    /// A state in which `a` holds this for a second from tick 0.
    fn held() -> kernel::State {
        let mut state = kernel::State::default();
        let want = Want {
            resource: Resource::parse("db:1").unwrap(),
            others: Default::default(),
            mode: Mode::Exclusive,
            ttl: Span::from_secs(1),
            nonce: Nonce::default(),
            labels: Labels::default(),
        };
        let acquire = Command::Acquire(Acquire {
            principal: Principal::parse("admin").unwrap(),
            holder: Holder::parse("a").unwrap(),
            wants: vec![want],
            contention: Contention::Refuse,
            key: None,
        });
        for event in decide(&state, &acquire, Tick(0)).events {
            state.apply(&event).unwrap();
        }
        state
    }

    fn fences(state: &kernel::State, wanted: LeaseState, now: Tick) -> Vec<u64> {
        let (after, caller) = (Fence::default(), Caller::admin(Principal::parse("admin").unwrap()));
        let filter = Filter { resource: None, holder: None, state: wanted, limit: 10, after, caller };
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
