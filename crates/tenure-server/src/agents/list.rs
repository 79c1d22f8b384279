//! `GET /v1/agents` and `GET /v1/agents/{id}`: who is there, what each has, and what each waits for.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use tenure_api::{AgentView, Agents};

use super::{names, view};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::fields::query;
use crate::http::refusal::no_such_agent;

/// The most agents in one answer.
const MOST: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    limit: Option<usize>,
}

/// Every agent of whom something is known.
#[utoipa::path(
    get,
    path = "/v1/agents",
    tag = "agents",
    operation_id = "agents",
    params(("limit" = Option<usize>, Query, description = "So many at the most", minimum = 1, maximum = 1_000)),
    responses((status = 200, description = "The agents, by their names", body = Agents)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Failure> {
    let Asked { limit } = query(&uri)?;
    let limit = limit.unwrap_or(MOST);
    if !(1..=MOST).contains(&limit) {
        return Err(Failure::invalid("limit", &format!("must be from 1 to {MOST}")));
    }
    let now = app.registrar.now();
    let agents = app.registrar.read(|state| {
        let seen = state.agents().filter_map(|(id, agent)| view::agent(state, &caller, id, agent, now));
        seen.take(limit).collect()
    });
    Ok(json(StatusCode::OK, &Agents { agents }))
}

/// One agent as it is.
#[utoipa::path(
    get,
    path = "/v1/agents/{id}",
    tag = "agents",
    operation_id = "agent",
    params(("id" = String, Path, description = "The agent, as `agent_id` named it")),
    responses((status = 200, description = "The agent", body = AgentView)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    let Path(id) = path.map_err(|_| no_such_agent())?;
    Ok(json(StatusCode::OK, &find(&app, &caller, &id)?))
}

/// The agent with this name, as far as the caller may see it.
pub(super) fn find(app: &App, caller: &Caller, id: &str) -> Result<AgentView, Failure> {
    let id = names::agent_named(id).map_err(|_| no_such_agent())?;
    let now = app.registrar.now();
    let found = app.registrar.read(|state| view::agent(state, caller, &id, state.agent(&id)?, now));
    found.ok_or_else(no_such_agent)
}
