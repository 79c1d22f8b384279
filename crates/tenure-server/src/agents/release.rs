//! `POST /v1/leases/release`: leases that an agent does not need any more.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::ReleasedLeases;
use tenure_core::kernel::{AgentAnswer, AgentCommand};

use super::ask;
use super::named::Named;
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::refusal::unexpected;

/// Give leases of an agent back.
///
/// Giving back what is over already is a success.
#[utoipa::path(
    post,
    path = "/v1/leases/release",
    tag = "agents",
    operation_id = "releaseAll",
    request_body = tenure_api::AgentLeases,
    responses((status = 200, description = "They are over", body = ReleasedLeases)),
    extensions(("x-codes" = json!(["HOLDER_TAKEN"])))
)]
pub(super) async fn release(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, Failure> {
    let named = Named::read(body.fields, &app, &caller)?;
    let (agent, principal) = (named.agent.clone(), caller.principal.clone());
    let command = AgentCommand::Release { agent, principal, leases: named.fences() };
    let AgentAnswer::Released(over) = ask(&app, &caller, command).await?.0 else { return Err(unexpected()) };
    let mut told = ReleasedLeases { released: Vec::new(), unknown: Vec::new() };
    for (id, fence) in named.leases {
        let is_over = fence.is_some_and(|fence| over.contains(&fence));
        let list = if is_over { &mut told.released } else { &mut told.unknown };
        if !list.contains(&id) {
            list.push(id);
        }
    }
    Ok(json(StatusCode::OK, &told))
}
