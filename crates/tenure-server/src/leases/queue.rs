//! `GET /v1/queue`: who waits for a resource, in the order in which they will be served.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use tenure_api::{Queue, Waiter};
use tenure_core::kernel::{self, Holder, LeaseMode, LeaseRequest, QueueTicketView, Resource, Tick, Ticket};
use tenure_core::rules::overlap::overlaps;
use tenure_core::rules::{is_expired, remaining};

use crate::app::{App, tick_to_rfc3339};
use crate::http::auth::Caller;
use crate::http::body::parse_query;
use crate::http::response::{HttpError, json};

/// Which resource a question is about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueQuery {
    resource: String,
}

/// List waiting requests of a resource.
///
/// Sorted in the order of service: agents by age, then the FIFO queue.
#[utoipa::path(
    get,
    path = "/v1/queue",
    tag = "watching",
    operation_id = "queue",
    params(("resource" = String, Query, description = "Name of the resource")),
    responses((status = 200, description = "Requests that wait", body = Queue)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(crate) async fn queue(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, HttpError> {
    let resource = parse_resource_query(&caller, &uri)?;
    let now = app.registrar.now();
    let waiting = app.registrar.read(|state| waiters(state, &resource, &caller, now));
    Ok(json(StatusCode::OK, &Queue { resource: resource.as_str().to_owned(), waiting }))
}

/// The resource in `?resource=`, if the caller may ask about it.
pub(crate) fn parse_resource_query(caller: &Caller, uri: &Uri) -> Result<Resource, HttpError> {
    let query: QueueQuery = parse_query(uri)?;
    let resource = Resource::parse(&query.resource)?;
    caller.require_resource(resource.as_str())?;
    Ok(resource)
}

/// Who waits, of those whose time is not over.
pub(crate) fn waiters(
    state: &kernel::KernelState,
    resource: &Resource,
    caller: &Caller,
    now: Tick,
) -> Vec<Waiter> {
    // Agents come before everybody who has no age.
    let agents = state.waiting_agents().filter(|pending| !is_expired(now.0, pending.until.0));
    let agents = agents.filter_map(|pending| {
        let mode = pending
            .requests
            .iter()
            .find(|request| overlaps(request.resource.as_str(), resource.as_str()))?
            .mode;
        let (ticket, holder, requests) = (pending.ticket, &pending.rank.agent, &pending.requests[..]);
        Some(AnyWaiter {
            ticket,
            holder,
            mode: Some(mode),
            requests,
            since: pending.at,
            until: pending.until,
        })
    });
    let queued = state.queue_of(resource).filter(|waiter| !is_expired(now.0, waiter.until.0));
    let tickets = queued.map(|waiter| {
        let QueueTicketView { ticket, holder, requests, since, until, .. } = waiter;
        let is_meant = |request: &&LeaseRequest| request.resources().any(|name| name == resource);
        AnyWaiter {
            ticket,
            holder,
            mode: requests.iter().find(is_meant).map(|request| request.mode),
            requests,
            since,
            until,
        }
    });
    let ordered = (1..).zip(agents.chain(tickets));
    ordered.map(|(position, waiter)| waiter_view(state, caller, now, position, &waiter)).collect()
}

/// Somebody who waits, in whichever way.
struct AnyWaiter<'a> {
    ticket: Ticket,
    holder: &'a Holder,
    mode: Option<LeaseMode>,
    requests: &'a [LeaseRequest],
    since: Tick,
    until: Tick,
}

fn waiter_view(
    state: &kernel::KernelState,
    caller: &Caller,
    now: Tick,
    position: usize,
    waiter: &AnyWaiter<'_>,
) -> Waiter {
    // What else it waits for may be none of the caller's business.
    let names = waiter.requests.iter().flat_map(|request| request.resources()).map(|name| name.as_str());
    let names = names.filter(|name| caller.can_see(name));
    Waiter {
        ticket: waiter.ticket.0,
        position,
        holder: waiter.holder.as_str().to_owned(),
        mode: waiter.mode.map_or_else(String::new, |mode| mode.as_str().to_owned()),
        resources: names.map(str::to_owned).collect(),
        since: tick_to_rfc3339(state, waiter.since),
        waited_ms: now.since(waiter.since).as_millis(),
        remaining_ms: remaining(now.0, waiter.until.0) / 1_000,
    }
}
