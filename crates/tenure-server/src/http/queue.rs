//! `GET /v1/queue`: who waits for a resource, in the order in which they will be served.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use tenure_api::{Queue, Waiter};
use tenure_core::kernel::{self, Holder, Mode, Resource, Tick, Ticket, TicketView, Want};
use tenure_core::rules::overlap::overlap;
use tenure_core::rules::time::{is_over, remaining};

use super::answer::{Failure, json};
use super::auth::Caller;
use super::fields::query;
use super::names::time_of;
use crate::app::App;

/// Which resource a question is about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    resource: String,
}

/// Who waits for a resource, in the order in which they will be served.
#[utoipa::path(
    get,
    path = "/v1/queue",
    tag = "watching",
    operation_id = "queue",
    params(("resource" = String, Query, description = "Which one")),
    responses((status = 200, description = "The queue", body = Queue)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn queue(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Failure> {
    let resource = asked_about(&caller, &uri)?;
    let now = app.registrar.now();
    let waiting = app.registrar.read(|state| waiting(state, &resource, &caller, now));
    Ok(json(StatusCode::OK, &Queue { resource: resource.as_str().to_owned(), waiting }))
}

/// The resource in `?resource=`, if the caller may ask about it.
pub(super) fn asked_about(caller: &Caller, uri: &Uri) -> Result<Resource, Failure> {
    let asked: Asked = query(uri)?;
    let resource = Resource::parse(&asked.resource)?;
    caller.require_resource(resource.as_str())?;
    Ok(resource)
}

/// Who waits, of those whose time is not over.
pub(super) fn waiting(state: &kernel::State, resource: &Resource, caller: &Caller, now: Tick) -> Vec<Waiter> {
    // Agents come before everybody who has no age.
    let agents = state.pending().filter(|pending| !is_over(now.0, pending.until.0));
    let agents = agents.filter_map(|pending| {
        let mode = pending.wants.iter().find(|want| overlap(want.resource.as_str(), resource.as_str()))?.mode;
        let (ticket, holder, wants) = (pending.ticket, &pending.rank.agent, &pending.wants[..]);
        Some(InLine { ticket, holder, mode: Some(mode), wants, since: pending.at, until: pending.until })
    });
    let others = state.queue_of(resource).filter(|waiter| !is_over(now.0, waiter.until.0));
    let others = others.map(|waiter| {
        let TicketView { ticket, holder, wants, since, until, .. } = waiter;
        let is_meant = |want: &&Want| want.resources().any(|name| name == resource);
        InLine {
            ticket,
            holder,
            mode: wants.iter().find(is_meant).map(|want| want.mode),
            wants,
            since,
            until,
        }
    });
    let in_line = (1..).zip(agents.chain(others));
    in_line.map(|(position, waiter)| shown(state, caller, now, position, &waiter)).collect()
}

/// Somebody who waits, in whichever way.
struct InLine<'a> {
    ticket: Ticket,
    holder: &'a Holder,
    mode: Option<Mode>,
    wants: &'a [Want],
    since: Tick,
    until: Tick,
}

fn shown(state: &kernel::State, caller: &Caller, now: Tick, position: usize, waiter: &InLine<'_>) -> Waiter {
    // What else it waits for may be none of the caller's business.
    let names = waiter.wants.iter().flat_map(|want| want.resources()).map(|name| name.as_str());
    let names = names.filter(|name| caller.may_see(name));
    Waiter {
        ticket: waiter.ticket.0,
        position,
        holder: waiter.holder.as_str().to_owned(),
        mode: waiter.mode.map_or_else(String::new, |mode| mode.as_str().to_owned()),
        resources: names.map(str::to_owned).collect(),
        since: time_of(state, waiter.since),
        waited_ms: now.since(waiter.since).as_millis(),
        remaining_ms: remaining(now.0, waiter.until.0) / 1_000,
    }
}
