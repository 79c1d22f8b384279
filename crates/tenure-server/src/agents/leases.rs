//! Renews, releases and reconciles the leases of an agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{
    AgentLeaseIds, AgentReleaseResult, HeartbeatRejection, HeartbeatRenewal, HeartbeatResult,
    ReconcileResult, ReconciledLease,
};
use tenure_core::kernel;
use tenure_core::kernel::{
    AgentCommand, AgentOutcome, Fence, HeartbeatOutcome, Holder, LeaseEnd, LeaseTerms, Resource, Tick,
};
use tenure_core::rules::is_expired;

use super::{parse, submit, view};
use crate::app::{App, tick_to_rfc3339};
use crate::http::auth::Caller;
use crate::http::body::{RequestBody, check_count};
use crate::http::response::{HttpError, end_reason_name, json, unexpected};
use crate::tokens::TokenScope;

/// Renew leases of an agent.
///
/// Renews each lease on its own, by its own TTL from now. Ended leases stay ended and are listed in
/// `rejected`.
#[utoipa::path(
    post,
    path = "/v1/leases/heartbeat",
    tag = "agents",
    operation_id = "heartbeat",
    request_body = tenure_api::AgentLeaseIds,
    responses((status = 200, description = "Renewed and rejected leases", body = HeartbeatResult)),
    extensions(("x-codes" = json!(["HOLDER_TAKEN"])))
)]
pub(super) async fn heartbeat(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: RequestBody<AgentLeaseIds>,
) -> Result<Response, HttpError> {
    let named = AgentLeasesRequest::parse(body.request, &app, &caller)?;
    let (agent, principal) = (named.agent.clone(), caller.principal.clone());
    let command = AgentCommand::Heartbeat { agent, principal, leases: named.fences() };
    let (answer, stamp) = submit(&app, &caller, command).await?;
    let AgentOutcome::Heartbeats(beaten) = answer else { return Err(unexpected()) };
    let mut outcomes = beaten.into_iter().map(|(_, outcome)| outcome);
    let mut response = HeartbeatResult { renewed: Vec::new(), rejected: Vec::new() };
    app.registrar.read(|state| {
        for (id, fence) in named.leases {
            let outcome = fence.and_then(|_| outcomes.next()).unwrap_or(HeartbeatOutcome::Unknown);
            match outcome {
                HeartbeatOutcome::Active(until) => response.renewed.push(HeartbeatRenewal {
                    id,
                    expires_at: tick_to_rfc3339(state, until),
                    remaining_ms: until.since(stamp).as_millis(),
                }),
                HeartbeatOutcome::Ended(end) => {
                    response.rejected.push(HeartbeatRejection { id, code: ended(end).to_owned() })
                }
                HeartbeatOutcome::Unknown => {
                    response.rejected.push(HeartbeatRejection { id, code: "NOT_FOUND".to_owned() })
                }
            }
        }
    });
    Ok(json(StatusCode::OK, &response))
}

fn ended(end: LeaseEnd) -> &'static str {
    match end {
        LeaseEnd::Expired => "EXPIRED",
        LeaseEnd::Released(_) => "RELEASED",
        LeaseEnd::Revoked(_) => "REVOKED",
    }
}

/// Release leases of an agent.
///
/// Releasing an ended lease succeeds.
#[utoipa::path(
    post,
    path = "/v1/leases/release",
    tag = "agents",
    operation_id = "releaseAll",
    request_body = tenure_api::AgentLeaseIds,
    responses((status = 200, description = "Released and unknown leases", body = AgentReleaseResult)),
    extensions(("x-codes" = json!(["HOLDER_TAKEN"])))
)]
pub(super) async fn release(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: RequestBody<AgentLeaseIds>,
) -> Result<Response, HttpError> {
    let named = AgentLeasesRequest::parse(body.request, &app, &caller)?;
    let (agent, principal) = (named.agent.clone(), caller.principal.clone());
    let command = AgentCommand::Release { agent, principal, leases: named.fences() };
    let AgentOutcome::Released(ended) = submit(&app, &caller, command).await?.0 else {
        return Err(unexpected());
    };
    let mut result = AgentReleaseResult { released: Vec::new(), unknown: Vec::new() };
    for (id, fence) in named.leases {
        let has_ended = fence.is_some_and(|fence| ended.contains(&fence));
        let list = if has_ended { &mut result.released } else { &mut result.unknown };
        if !list.contains(&id) {
            list.push(id);
        }
    }
    Ok(json(StatusCode::OK, &result))
}

/// Reconcile leases that an agent remembers.
///
/// Returns the state of exactly the requested leases, after all earlier requests were decided. It overrides
/// what the agent remembers.
#[utoipa::path(
    post,
    path = "/v1/leases/reconcile",
    tag = "agents",
    operation_id = "reconcile",
    request_body = tenure_api::AgentLeaseIds,
    responses((status = 200, description = "State of each lease", body = ReconcileResult)),
    extensions(("x-codes" = json!(["HOLDER_TAKEN"])))
)]
pub(super) async fn reconcile(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: RequestBody<AgentLeaseIds>,
) -> Result<Response, HttpError> {
    let named = AgentLeasesRequest::parse(body.request, &app, &caller)?;
    let (agent, principal) = (named.agent.clone(), caller.principal.clone());
    // Giving nothing back changes nothing. But it is decided by the writer, after everything that was asked before it, and is
    // answered when all of that is durable and can be seen.
    submit(&app, &caller, AgentCommand::Release { agent, principal, leases: Vec::new() }).await?;
    let now = app.registrar.now();
    let leases = app.registrar.read(|state| {
        let truth = |(id, fence): (String, Option<Fence>)| {
            let found = fence.and_then(|fence| found(state, &named.agent, fence, now));
            (
                id,
                found
                    .map_or_else(unknown, |found| reconciled_lease(state, &caller, &named.agent, found, now)),
            )
        };
        named.leases.into_iter().map(truth).collect::<BTreeMap<_, _>>()
    });
    Ok(json(StatusCode::OK, &ReconcileResult { leases }))
}

/// A lease of this agent, dead or alive.
struct AgentLeaseRecord<'a> {
    fence: Fence,
    resource: &'a Resource,
    terms: &'a LeaseTerms,
    end: Option<(LeaseEnd, Tick)>,
}

fn found<'a>(
    state: &'a kernel::KernelState,
    agent: &Holder,
    fence: Fence,
    now: Tick,
) -> Option<AgentLeaseRecord<'a>> {
    if let Some(lease) = state.lease(fence).filter(|lease| lease.holder == agent) {
        let expires_at = lease.terms.expires_at;
        // What is over is over, announced or not.
        let end = is_expired(now.0, expires_at.0).then_some((LeaseEnd::Expired, expires_at));
        return Some(AgentLeaseRecord { fence, resource: lease.resource, terms: lease.terms, end });
    }
    let lease = state.ended_lease(fence).filter(|lease| lease.holder == *agent)?;
    let end = Some((lease.end, lease.ended_at));
    Some(AgentLeaseRecord { fence, resource: &lease.resource, terms: &lease.terms, end })
}

fn reconciled_lease(
    state: &kernel::KernelState,
    caller: &Caller,
    agent: &Holder,
    found: AgentLeaseRecord<'_>,
    now: Tick,
) -> ReconciledLease {
    let AgentLeaseRecord { fence, resource, terms, end } = found;
    let (mode, expires_at) = (terms.mode, terms.expires_at);
    let held_by = match end {
        None => Vec::new(),
        Some(_) => {
            let conflicting = view::conflicting_leases(state, resource, mode, now);
            let seen =
                conflicting.filter(|lease| lease.holder != agent && caller.can_see(lease.resource.as_str()));
            view::unique_holder_names(seen.map(|lease| lease.holder))
        }
    };
    ReconciledLease {
        held: end.is_none(),
        state: match end {
            None => "ACTIVE",
            Some((LeaseEnd::Expired, _)) => "EXPIRED",
            Some(_) => "RELEASED",
        }
        .to_owned(),
        remaining_ms: if end.is_some() { 0 } else { expires_at.since(now).as_millis() },
        resource: Some(resource.as_str().to_owned()),
        predicate: Some(mode.as_str().to_owned()),
        expires_at: Some(tick_to_rfc3339(state, expires_at)),
        fence: Some(fence.0),
        end: end.map(|(end, _)| end_reason_name(end).to_owned()),
        ended_at: end.map(|(_, at)| tick_to_rfc3339(state, at)),
        held_by,
    }
}

/// Never given out, or over for too long, or somebody else's: which of these is nobody else's business.
fn unknown() -> ReconciledLease {
    ReconciledLease {
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

/// The most leases in one request.
const MAX_LEASES: usize = 1_024;

/// An agent, and leases that it takes for its own.
pub(super) struct AgentLeasesRequest {
    pub(super) agent: Holder,
    /// Each as it was written, and its number if it can be one of this ledger.
    pub(super) leases: Vec<(String, Option<Fence>)>,
}

impl AgentLeasesRequest {
    /// Parses a body, and refuses a caller whose token does not reach what these leases are on.
    pub(super) fn parse(request: AgentLeaseIds, app: &App, caller: &Caller) -> Result<Self, HttpError> {
        let agent = parse::parse_agent_id(&request.agent_id)?;
        check_count("lease_ids", request.lease_ids.len(), MAX_LEASES)?;
        caller.require(TokenScope::LeasesWrite)?;
        let leases = app.registrar.read(|state| {
            let tag = state.ledger_tag();
            let named = request.lease_ids.into_iter().map(|id| {
                let fence = tag.fence_of(&id);
                // Of what is somebody else's, nothing is said here: it is unknown to this agent.
                let active =
                    fence.and_then(|fence| state.lease(fence)).map(|lease| (lease.holder, lease.resource));
                let ended = || {
                    fence
                        .and_then(|fence| state.ended_lease(fence))
                        .map(|lease| (&lease.holder, &lease.resource))
                };
                let own = active.or_else(ended).filter(|(holder, _)| **holder == agent);
                own.map_or(Ok(()), |(_, resource)| caller.require_resource(resource.as_str()))?;
                Ok((id, fence))
            });
            named.collect::<Result<_, HttpError>>()
        })?;
        Ok(Self { agent, leases })
    }

    /// The numbers of those that have one.
    pub(super) fn fences(&self) -> Vec<Fence> {
        self.leases.iter().filter_map(|(_, fence)| *fence).collect()
    }
}
