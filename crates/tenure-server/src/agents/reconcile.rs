//! `POST /v1/leases/reconcile`: what is true of leases, whatever an agent remembers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Reconciled, TrueLease};
use tenure_core::kernel::{self, AgentCommand, End, Fence, Holder, Mode, Resource, Tick};
use tenure_core::rules::time::is_over;

use super::named::Named;
use super::{ask, view};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::refusal::end_name;
use crate::http::times::time_of;

/// Say what is true of the leases that an agent remembers.
///
/// Exactly those that are asked for, as they are once everything that was asked before is decided. It overrides what the agent
/// remembers.
#[utoipa::path(
    post,
    path = "/v1/leases/reconcile",
    tag = "agents",
    operation_id = "reconcile",
    request_body = tenure_api::AgentLeases,
    responses((status = 200, description = "What is true of each", body = Reconciled)),
    extensions(("x-codes" = json!(["HOLDER_TAKEN"])))
)]
pub(super) async fn reconcile(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, Failure> {
    let named = Named::read(body.fields, &app, &caller)?;
    let (agent, principal) = (named.agent.clone(), caller.principal.clone());
    // Giving nothing back changes nothing. But it is decided by the writer, after everything that was asked before it, and is
    // answered when all of that is durable and can be seen.
    ask(&app, &caller, AgentCommand::Release { agent, principal, leases: Vec::new() }).await?;
    let now = app.registrar.now();
    let leases = app.registrar.read(|state| {
        let truth = |(id, fence): (String, Option<Fence>)| {
            let found = fence.and_then(|fence| found(state, &named.agent, fence, now));
            (id, found.map_or_else(unknown, |found| shown(state, &caller, &named.agent, found, now)))
        };
        named.leases.into_iter().map(truth).collect::<BTreeMap<_, _>>()
    });
    Ok(json(StatusCode::OK, &Reconciled { leases }))
}

/// A lease of this agent, dead or alive.
struct Found {
    fence: Fence,
    resource: Resource,
    mode: Mode,
    expires_at: Tick,
    end: Option<(End, Tick)>,
}

fn found(state: &kernel::State, agent: &Holder, fence: Fence, now: Tick) -> Option<Found> {
    if let Some(lease) = state.lease(fence).filter(|lease| lease.holder == agent) {
        let (resource, mode, expires_at) = (lease.resource.clone(), lease.mode, lease.expires_at);
        // What is over is over, announced or not.
        let end = is_over(now.0, expires_at.0).then_some((End::Expired, expires_at));
        return Some(Found { fence, resource, mode, expires_at, end });
    }
    let lease = state.ended(fence).filter(|lease| lease.holder == *agent)?;
    let (resource, mode, expires_at) = (lease.resource.clone(), lease.mode, lease.expires_at);
    Some(Found { fence, resource, mode, expires_at, end: Some((lease.end, lease.ended_at)) })
}

fn shown(state: &kernel::State, caller: &Caller, agent: &Holder, found: Found, now: Tick) -> TrueLease {
    let Found { fence, resource, mode, expires_at, end } = found;
    let held_by = match end {
        None => Vec::new(),
        Some(_) => {
            let apart = view::holders_apart(state, &resource, mode, now);
            let seen = apart.filter(|lease| lease.holder != agent && caller.may_see(lease.resource.as_str()));
            view::each_once(seen.map(|lease| lease.holder))
        }
    };
    TrueLease {
        held: end.is_none(),
        state: match end {
            None => "ACTIVE",
            Some((End::Expired, _)) => "EXPIRED",
            Some(_) => "RELEASED",
        }
        .to_owned(),
        remaining_ms: if end.is_some() { 0 } else { expires_at.since(now).as_millis() },
        resource: Some(resource.as_str().to_owned()),
        predicate: Some(mode.as_str().to_owned()),
        expires_at: Some(time_of(state, expires_at)),
        fence: Some(fence.0),
        end: end.map(|(end, _)| end_name(end).to_owned()),
        ended_at: end.map(|(_, at)| time_of(state, at)),
        held_by,
    }
}

/// Never given out, or over for too long, or somebody else's: which of these is nobody else's business.
fn unknown() -> TrueLease {
    TrueLease {
        held: false,
        state: "UNKNOWN".to_owned(),
        remaining_ms: 0,
        resource: None,
        predicate: None,
        expires_at: None,
        fence: None,
        end: None,
        ended_at: None,
        held_by: Vec::new(),
    }
}
