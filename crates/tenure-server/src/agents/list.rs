//! Lists agents, the state of a resource, and the contention graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use tenure_api::{AgentList, AgentView, ContentionEdge, ContentionGraph, ContentionNode, ResourceState};
use tenure_core::kernel;
use tenure_core::kernel::{Holder, Resource, Tick};
use tenure_core::rules::is_expired;
use tenure_core::rules::overlap::overlaps;

use super::wait_graph::{Edge, Graph};
use super::{parse, view};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::parse_query;
use crate::http::response::{HttpError, json, no_such_agent};

/// The most agents in one answer.
const MAX_AGENTS: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentsQuery {
    limit: Option<usize>,
}

/// List known agents.
#[utoipa::path(
    get,
    path = "/v1/agents",
    tag = "agents",
    operation_id = "agents",
    params(("limit" = Option<usize>, Query, description = "Maximum number of agents, 1 to 1000, default 1000", minimum = 1, maximum = 1_000)),
    responses((status = 200, description = "Agents, sorted by id", body = AgentList)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, HttpError> {
    let AgentsQuery { limit } = parse_query(&uri)?;
    let limit = limit.unwrap_or(MAX_AGENTS);
    if !(1..=MAX_AGENTS).contains(&limit) {
        return Err(HttpError::invalid("limit", &format!("must be from 1 to {MAX_AGENTS}")));
    }
    let now = app.registrar.now();
    let agents = app.registrar.read(|state| {
        let seen = state.agents().filter_map(|(id, agent)| view::agent(state, &caller, id, agent, now));
        seen.take(limit).collect()
    });
    Ok(json(StatusCode::OK, &AgentList { agents }))
}

/// Get an agent.
#[utoipa::path(
    get,
    path = "/v1/agents/{id}",
    tag = "agents",
    operation_id = "agent",
    params(("id" = String, Path, description = "Agent id, as in `agent_id`")),
    responses((status = 200, description = "State of the agent", body = AgentView)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpError> {
    let Path(id) = path.map_err(|_| no_such_agent())?;
    Ok(json(StatusCode::OK, &find(&app, &caller, &id)?))
}

/// The agent with this name, as far as the caller may see it.
pub(super) fn find(app: &App, caller: &Caller, id: &str) -> Result<AgentView, HttpError> {
    let id = parse::parse_agent_id(id).map_err(|_| no_such_agent())?;
    let now = app.registrar.now();
    let found = app.registrar.read(|state| view::agent(state, caller, &id, state.agent(&id)?, now));
    found.ok_or_else(no_such_agent)
}

/// Get holders and waiters of a resource and of overlapping resources.
#[utoipa::path(
    get,
    path = "/v1/resource/{id}/state",
    tag = "agents",
    operation_id = "resourceState",
    params(("id" = String, Path, description = "Resource such as `FILE:src/lib.rs`, with `/` encoded as `%2F`")),
    responses((status = 200, description = "State of the resource", body = ResourceState)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn resource_state(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpError> {
    let Path(id) = path.map_err(|_| HttpError::invalid("id", "must be text in UTF-8"))?;
    let resource = parse::any_resource("id", &id)?;
    caller.require_resource(resource.as_str())?;
    let now = app.registrar.now();
    let (leases, waiting) = app.registrar.read(|state| {
        let around = state
            .leases_overlapping_resource(&resource)
            .filter(|lease| !is_expired(now.0, lease.terms.expires_at.0));
        let seen = around.filter(|lease| caller.can_see(lease.resource.as_str()));
        let mut leases: Vec<_> = seen.map(|lease| view::active_lease(state, &lease, now)).collect();
        leases.sort_unstable_by_key(|lease| lease.fence);
        let is_meant =
            |name: &Resource| caller.can_see(name.as_str()) && overlaps(name.as_str(), resource.as_str());
        let agents = state.waiting_agents().filter(|pending| !is_expired(now.0, pending.until.0));
        let agents =
            agents.filter(|pending| pending.requests.iter().any(|request| is_meant(&request.resource)));
        let agents = agents.map(|pending| pending.rank.agent.as_str().to_owned());
        let queued = state.queue_tickets().filter(|ticket| !is_expired(now.0, ticket.until.0));
        let waiters = queued
            .filter(|ticket| ticket.requests.iter().flat_map(|request| request.resources()).any(is_meant));
        let waiters = waiters.map(|ticket| ticket.holder.as_str().to_owned());
        (leases, agents.chain(waiters).collect())
    });
    let held = !leases.is_empty();
    Ok(json(StatusCode::OK, &ResourceState { resource: resource.as_str().to_owned(), held, leases, waiting }))
}

/// The most edges in one answer. A thousand waiters in one queue have half a million.
const MAX_EDGES: usize = 10_000;

/// Get the contention graph of all APIs.
///
/// An edge leads from a waiter to a holder of a conflicting resource or to a conflicting waiter ahead of it.
/// Without `oneOfSeveral` edges and edges of file sessions, the graph has no cycle.
#[utoipa::path(
    get,
    path = "/v1/contention",
    tag = "agents",
    operation_id = "contention",
    responses((status = 200, description = "The contention graph", body = ContentionGraph)),
)]
pub(super) async fn contention(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, HttpError> {
    let now = app.registrar.now();
    let shown = app.registrar.read(|state| contention_graph(state, &caller, now));
    Ok(json(StatusCode::OK, &shown))
}

fn contention_graph(state: &kernel::KernelState, caller: &Caller, now: Tick) -> ContentionGraph {
    let mut nodes = BTreeMap::new();
    let graph = Graph::new(state, now);
    let mut edges = graph.edges().filter(|edge| caller.can_see(edge.resource.as_str()));
    let listed: Vec<_> = edges.by_ref().take(MAX_EDGES).collect();
    let truncated = edges.next().is_some();
    for holder in listed.iter().flat_map(|edge| [edge.from, edge.to]) {
        nodes.entry(holder).or_insert_with(|| node(state, holder));
    }
    let edges = listed.into_iter().map(|edge| shown_edge(&edge, now)).collect();
    ContentionGraph { nodes: nodes.into_values().collect(), edges, truncated }
}

fn node(state: &kernel::KernelState, holder: &Holder) -> ContentionNode {
    let agent = state.agent(holder);
    ContentionNode {
        id: holder.as_str().to_owned(),
        priority_timestamp: agent.and_then(|agent| agent.priority),
        state: agent.and_then(|agent| agent.phase).map(|phase| phase.as_str().to_owned()),
    }
}

fn shown_edge(edge: &Edge<'_>, now: Tick) -> ContentionEdge {
    ContentionEdge {
        from: edge.from.as_str().to_owned(),
        to: edge.to.as_str().to_owned(),
        resource: edge.resource.as_str().to_owned(),
        predicate: edge.mode.as_str().to_owned(),
        because: if edge.is_held { "HOLDS" } else { "WAITS" }.to_owned(),
        wait_timeout_ms: edge.until.since(now).as_millis(),
        one_of_several: edge.one_of_several,
    }
}
