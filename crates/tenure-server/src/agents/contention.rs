//! `GET /v1/contention`: who waits for whom.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Contention, ContentionEdge, ContentionNode};
use tenure_core::kernel::{self, Holder, Tick};

use super::graph::{Edge, Graph};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;

/// The most edges in one answer. A thousand waiters in one queue have half a million.
const MOST: usize = 10_000;

/// Who waits for whom, over all faces.
///
/// Only who really is in the way: who has something that does not go with what is wanted, or waits for it in front. Without
/// those edges of which any one of several is enough, and those of coding agents who want files, it never has a circle.
#[utoipa::path(
    get,
    path = "/v1/contention",
    tag = "agents",
    operation_id = "contention",
    responses((status = 200, description = "The graph", body = Contention)),
)]
pub(super) async fn contention(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    let now = app.registrar.now();
    let shown = app.registrar.read(|state| shown(state, &caller, now));
    Ok(json(StatusCode::OK, &shown))
}

fn shown(state: &kernel::State, caller: &Caller, now: Tick) -> Contention {
    let mut nodes = BTreeMap::new();
    let graph = Graph::new(state, now);
    let mut edges = graph.edges().filter(|edge| caller.may_see(edge.resource.as_str()));
    let told: Vec<_> = edges.by_ref().take(MOST).collect();
    let truncated = edges.next().is_some();
    for holder in told.iter().flat_map(|edge| [edge.from, edge.to]) {
        nodes.entry(holder).or_insert_with(|| node(state, holder));
    }
    let edges = told.into_iter().map(|edge| shown_edge(&edge, now)).collect();
    Contention { nodes: nodes.into_values().collect(), edges, truncated }
}

fn node(state: &kernel::State, holder: &Holder) -> ContentionNode {
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
