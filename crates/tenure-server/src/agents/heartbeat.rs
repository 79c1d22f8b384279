//! `POST /v1/leases/heartbeat`: more time for all leases of an agent at once.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Beat, Heartbeat, Rejected};
use tenure_core::kernel::{AgentAnswer, AgentCommand, End, Pulse};

use super::ask;
use super::named::Named;
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::refusal::unexpected;
use crate::http::times::time_of;

/// Give the leases of an agent more time.
///
/// Each by itself, by its own ttl from now on. What is over stays so, and is named among the rejected.
#[utoipa::path(
    post,
    path = "/v1/leases/heartbeat",
    tag = "agents",
    operation_id = "heartbeat",
    request_body = tenure_api::AgentLeases,
    responses((status = 200, description = "What became of each", body = Heartbeat)),
    extensions(("x-codes" = json!(["HOLDER_TAKEN"])))
)]
pub(super) async fn heartbeat(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, Failure> {
    let named = Named::read(body.fields, &app, &caller)?;
    let (agent, principal) = (named.agent.clone(), caller.principal.clone());
    let command = AgentCommand::Heartbeat { agent, principal, leases: named.fences() };
    let (answer, stamp) = ask(&app, &caller, command).await?;
    let AgentAnswer::Beaten(beaten) = answer else { return Err(unexpected()) };
    let mut pulses = beaten.into_iter().map(|(_, pulse)| pulse);
    let mut told = Heartbeat { renewed: Vec::new(), rejected: Vec::new() };
    app.registrar.read(|state| {
        for (id, fence) in named.leases {
            let pulse = fence.and_then(|_| pulses.next()).unwrap_or(Pulse::Unknown);
            match pulse {
                Pulse::Until(until) => told.renewed.push(Beat {
                    id,
                    expires_at: time_of(state, until),
                    remaining_ms: until.since(stamp).as_millis(),
                }),
                Pulse::Over(end) => told.rejected.push(Rejected { id, code: over(end).to_owned() }),
                Pulse::Unknown => told.rejected.push(Rejected { id, code: "NOT_FOUND".to_owned() }),
            }
        }
    });
    Ok(json(StatusCode::OK, &told))
}

fn over(end: End) -> &'static str {
    match end {
        End::Expired => "EXPIRED",
        End::Released(_) => "RELEASED",
        End::Revoked(_) => "REVOKED",
    }
}
